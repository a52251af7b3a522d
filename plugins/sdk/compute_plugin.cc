// Keeps a driver's grants as grants of a resource plugin, and converts its answers to their message
// and back.
#include "plugins/sdk/compute_plugin.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/util/json_util.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/proto/cci/v1alpha1/cci.pb.h"

namespace qrm::sdk {
namespace {

/// The annotation of an allocation that has the driver's whole answer as JSON.
constexpr char kAnswer[] = "cci.qrm.io/answer";
constexpr double kMilli = 1000;

/// Calls `question` with the driver in `host`.
template <typename Question>
auto AskDriver(PluginDriver& host, const char* function, const Question& question) {
  return host.AskAs<ComputePlugin>(
      function, "it is not a compute driver; register it as a resource plugin", question);
}

std::map<std::string, double> RequestOf(int64_t milli_cpus) {
  return {{"cpu", static_cast<double>(milli_cpus) / kMilli}};
}

/// Grants that the manager no longer has on record: it offers their CPUs to another container.
std::vector<ContainerKey> Overtaken(const PluginDriver& host, const ComputeRequest& request) {
  std::vector<ContainerKey> keys;
  for (const auto& [key, grant] : host.grants()) {
    const StatusOr<ComputeGrant> given = GrantOf(grant.allocation);
    const bool of_other_pod =
        key.pod_uid != request.key.pod_uid;  // init containers lend their CPUs
    if (of_other_pod && given.ok() &&
        (given->Cpus() | given->Idle()).Intersects(request.available)) {
      keys.push_back(key);
    }
  }
  return keys;
}

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

ResourceAllocation ToAllocation(const ComputeGrant& grant) {
  std::string json;
  // Only messages with an Any can fail to be written.
  (void)google::protobuf::util::MessageToJsonString(ToWire(grant), &json);
  return {.oci_property = std::string(kCpusetCpus),
          .value = ToString(grant.Cpus()),
          .is_scalar_resource = true,
          .quantity = static_cast<double>(grant.Cpus().Count()),
          .annotations = {{kAnswer, json}},
          .exclusive = !grant.Cpus().Empty()};
}

StatusOr<ComputeGrant> GrantOf(const ResourceAllocation& allocation) {
  const auto answer = allocation.annotations.find(kAnswer);
  ::cci::v1alpha1::AdmitResponse message;
  google::protobuf::util::JsonParseOptions reading;
  reading.ignore_unknown_fields = true;  // a later version may have written it
  if (answer == allocation.annotations.end() ||
      !google::protobuf::util::JsonStringToMessage(answer->second, &message, reading).ok()) {
    return Errorf(StatusCode::kDataLoss,
                  "cannot read the driver's recorded grant; move its state aside and restart it");
  }
  return FromWire(message);
}

StatusOr<ComputeGrant> ComputePlugin::Admit(PluginDriver& host, const ComputeRequest& request) {
  for (const ContainerKey& key : Overtaken(host, request)) {
    QRM_RETURN_IF_ERROR(Remove(host, {.key = key}));
  }
  if (!request.current.Empty()) {
    return Propose(host, request);
  }
  return Record(host,
                {.key = request.key,
                 .pod_namespace = request.pod_namespace,
                 .pod_name = request.pod_name,
                 .type = request.type,
                 .resource = host.resource(),
                 .requests = RequestOf(request.milli_cpus)},
                Recorded::kAnswers, [&](ComputeDriver& driver) { return driver.Admit(request); });
}

StatusOr<HintList> ComputePlugin::GetHints(PluginDriver& host, const ComputeRequest& request) {
  return AskDriver(host, "Hints",
                   [&](ComputePlugin& plugin) { return plugin.driver_.Hints(request); });
}

StatusOr<ComputeGrant> ComputePlugin::Record(PluginDriver& host, const ContainerRequest& request,
                                             Recorded recorded, const Decide& decide) {
  const auto set_decide = [&](const Decide* next) {
    return AskDriver(host, "Admit", [next](ComputePlugin& plugin) {
      plugin.decide_ = next;
      return OkStatus();
    });
  };
  QRM_RETURN_IF_ERROR(set_decide(&decide));
  const auto allocation = host.Allocate(request, recorded);
  QRM_RETURN_IF_ERROR(set_decide(nullptr));
  QRM_RETURN_IF_ERROR(allocation.status());
  return GrantOf(*allocation);
}

StatusOr<ComputeGrant> ComputePlugin::Propose(PluginDriver& host, const ComputeRequest& request) {
  QRM_RETURN_IF_ERROR(TakeUp(host, request.key, request.current));
  const auto held = host.grants().find(request.key);
  ComputeGrant now{.parts = {{.cpus = request.current}}};
  if (held != host.grants().end()) {
    QRM_ASSIGN_OR_RETURN(now, GrantOf(held->second.allocation));
  }
  return AskDriver(host, "Resize", [&](ComputePlugin& plugin) -> StatusOr<ComputeGrant> {
    QRM_ASSIGN_OR_RETURN(ComputeGrant grant, plugin.driver_.Resize(request, now));
    plugin.proposals_[request.key] = {.milli_cpus = request.milli_cpus, .grant = grant};
    return grant;
  });
}

// The manager's records decide: it may have put a proposal in force that this process does not
// know.
Status ComputePlugin::TakeUp(PluginDriver& host, const ContainerKey& key, const CpuSet& cpus) {
  const auto held = host.grants().find(key);
  if (held == host.grants().end() || cpus.Empty() || !host.options().resizes) {
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const ComputeGrant before, GrantOf(held->second.allocation));
  ComputeGrant next = before;
  ContainerRequest request = held->second.request;
  QRM_RETURN_IF_ERROR(AskDriver(host, "Resize", [&](ComputePlugin& plugin) {
    const auto proposal = plugin.proposals_.extract(key);
    if (!proposal.empty() && proposal.mapped().grant.Cpus() == cpus) {
      next = proposal.mapped().grant;
      request.requests = RequestOf(proposal.mapped().milli_cpus);
    }
    return OkStatus();
  }));
  if (next.Cpus() == cpus && next == before && request == held->second.request) {
    return OkStatus();
  }
  if (next.Cpus() != cpus) {
    next.parts = {{.cpus = cpus, .name = next.parts.front().name}};
  }
  // The host waits for what it runs, and keeps nothing of it.
  // NOLINTBEGIN(clang-analyzer-core.StackAddressEscape)
  QRM_RETURN_IF_ERROR(
      Record(host, request, Recorded::kIsReplaced, [&](ComputeDriver&) { return next; }).status());
  return AskDriver(host, "Restore",
                   [&](ComputePlugin& plugin) { return plugin.Restore(host.grants()); });
  // NOLINTEND(clang-analyzer-core.StackAddressEscape)
}

Status ComputePlugin::Add(PluginDriver& host, const ComputeInstance& instance) {
  QRM_RETURN_IF_ERROR(TakeUp(host, instance.key, instance.cpus));
  return AskDriver(host, "Add",
                   [&](ComputePlugin& plugin) { return plugin.driver_.Add(instance); });
}

// The driver first: a grant that it cannot release stays on record.
Status ComputePlugin::Remove(PluginDriver& host, const ComputeRemoval& removal) {
  std::vector<ContainerKey> keys;
  for (const auto& [key, grant] : host.grants()) {
    if (key.pod_uid == removal.key.pod_uid &&
        (removal.key.container.empty() || key.container == removal.key.container)) {
      keys.push_back(key);
    }
  }
  for (const ContainerKey& key : keys) {
    QRM_RETURN_IF_ERROR(AskDriver(host, "Remove", [&](ComputePlugin& plugin) {
      plugin.proposals_.erase(key);
      return plugin.driver_.Remove(key);
    }));
    QRM_RETURN_IF_ERROR(host.ReleaseContainer(key));
  }
  return OkStatus();
}

Status ComputePlugin::Restore(const Grants& grants) {
  ComputeGrants held;
  for (const auto& [key, grant] : grants) {
    QRM_ASSIGN_OR_RETURN(held[key], GrantOf(grant.allocation));
  }
  return driver_.Restore(held);
}

StatusOr<ResourceAllocation> ComputePlugin::Allocate(const ContainerRequest& /*request*/,
                                                     const TopologyHint& /*hint*/) {
  if (decide_ == nullptr) {
    return Errorf(StatusCode::kUnimplemented, "it is a compute driver; call cciAdmit");
  }
  QRM_ASSIGN_OR_RETURN(const ComputeGrant grant, (*decide_)(driver_));
  return ToAllocation(grant);
}

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
  if (Named(grant).Empty() && message.rset().parts().empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it gives no CPU; add a part that is not exclusive for the whole pool, or reject "
                  "the container with the reason");
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
