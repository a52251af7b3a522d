// Reads and writes ResourceSets.
#include "plugins/sdk/compute_wire.h"

#include <algorithm>
#include <utility>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/proto/cci/v1alpha1/cci.pb.h"

namespace qrm::sdk {
namespace {

namespace cci = ::cci::v1alpha1;

/// At most this many unmet preferences or warnings are reported; longer lists are not readable.
constexpr int kMostTold = 64;

/// The union of the CPUs of all parts.
CpuSet Named(const ComputeGrant& grant) {
  CpuSet named;
  for (const ComputePart& part : grant.parts) {
    named |= part.cpus;
  }
  return named;
}

StatusOr<ComputePart> PartFrom(const cci::ResourceSet::Part& message, CpuSet& taken) {
  ComputePart part{.name = message.name(), .shared = !message.exclusive()};
  QRM_ASSIGN_OR_RETURN(part.cpus, CpuSet::Parse(message.cpuset()));
  QRM_ASSIGN_OR_RETURN(part.idle, CpuSet::Parse(message.idle_cpus()));
  if (part.shared && !part.idle.Empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it keeps CPUs {} idle in a shared part; name them in an exclusive part",
                  ToString(part.idle));
  }
  for (const CpuSet& cpus : {part.cpus, part.idle}) {
    if (cpus.Intersects(taken)) {
      return Errorf(StatusCode::kInvalidArgument, "it gives CPUs {} twice; name each once",
                    ToString(cpus & taken));
    }
    taken |= cpus;
  }
  return part;
}

StatusOr<std::vector<ComputePart>> PartsFrom(const cci::ResourceSet& set) {
  cci::ResourceSet whole;
  if (set.parts().empty()) {
    cci::ResourceSet::Part& part = *whole.add_parts();
    part.set_cpuset(set.cpuset());
    part.set_exclusive(set.exclusive());
  } else {
    *whole.mutable_parts() = set.parts();
  }
  std::vector<ComputePart> parts;
  CpuSet taken;
  for (const cci::ResourceSet::Part& message : whole.parts()) {
    QRM_ASSIGN_OR_RETURN(ComputePart part, PartFrom(message, taken));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

cci::AdmitResponse ToWire(const ComputeGrant& grant) {
  cci::AdmitResponse message;
  cci::ResourceSet& set = *message.mutable_rset();
  set.set_cpuset(ToString(Named(grant)));
  set.set_exclusive(!grant.shares());
  for (const ComputePart& part : grant.parts) {
    cci::ResourceSet::Part& added = *set.add_parts();
    added.set_cpuset(ToString(part.cpus));
    added.set_exclusive(!part.shared);
    added.set_name(part.name);
    added.set_idle_cpus(ToString(part.idle));
  }
  message.set_mems(ToString(grant.mems));
  message.mutable_envs()->insert(grant.envs.begin(), grant.envs.end());
  message.mutable_annotations()->insert(grant.annotations.begin(), grant.annotations.end());
  for (const UnmetWish& wish : grant.unmet) {
    cci::Unmet& unmet = *message.add_unmet();
    unmet.set_token(wish.token);
    unmet.set_reason(wish.reason);
  }
  message.mutable_warnings()->Assign(grant.warnings.begin(), grant.warnings.end());
  return message;
}

StatusOr<ComputeGrant> FromWire(const cci::AdmitResponse& message) {
  ComputeGrant grant{.envs = {message.envs().begin(), message.envs().end()},
                     .annotations = {message.annotations().begin(), message.annotations().end()}};
  QRM_ASSIGN_OR_RETURN(const CpuSet whole, CpuSet::Parse(message.rset().cpuset()));
  QRM_ASSIGN_OR_RETURN(grant.parts, PartsFrom(message.rset()));
  QRM_ASSIGN_OR_RETURN(grant.mems, NumaMask::Parse(message.mems()));
  if (grant.Cpus().Empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it gives no exclusive CPU; reject the container instead, with the reason");
  }
  if (whole != Named(grant)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "its set is {}, but the union of its parts is {}; make them equal",
                  Quoted(message.rset().cpuset()), ToString(Named(grant)));
  }
  for (int i = 0; i < std::min(message.unmet_size(), kMostTold); ++i) {
    const cci::Unmet& unmet = message.unmet(i);
    grant.unmet.push_back({.token = Quoted(unmet.token()), .reason = Quoted(unmet.reason())});
  }
  for (int i = 0; i < std::min(message.warnings_size(), kMostTold); ++i) {
    grant.warnings.push_back(Quoted(message.warnings(i)));
  }
  return grant;
}

}  // namespace qrm::sdk
