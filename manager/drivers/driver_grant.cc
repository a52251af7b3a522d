// Compares sets, and writes allocations.
#include "manager/drivers/driver_grant.h"

#include <vector>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

ResourceAllocation Own(const CpuSet& cpus, const Machine& machine) {
  ResourceAllocation allocation{.oci_property = std::string(kCpusetCpus),
                                .value = ToString(cpus),
                                .is_scalar_resource = true,
                                .quantity = static_cast<double>(cpus.Count()),
                                .exclusive = true};
  allocation.hints = std::vector<TopologyHint>{{.nodes = machine.NodesOf(cpus), .preferred = true}};
  for (const NumaNode& node : machine.nodes()) {
    if (const int count = (node.cpus & cpus).Count(); count > 0) {
      allocation.amount_by_node[static_cast<uint64_t>(node.id)] = static_cast<uint64_t>(count);
    }
  }
  return allocation;
}

/// Of all variables and annotations together: they go through the runtime with every creation.
constexpr std::size_t kMostTextBytes = 64 << 10;

/// Refuses what the runtime would fail on with less to say.
Status CheckTexts(const StringMap& envs, const StringMap& annotations) {
  std::size_t bytes = 0;
  for (const StringMap* texts : {&envs, &annotations}) {
    for (const auto& [name, value] : *texts) {
      bytes += name.size() + value.size();
    }
  }
  if (bytes > kMostTextBytes) {
    return Errorf(StatusCode::kInvalidArgument,
                  "its variables and annotations have {} bytes; {} are the most", bytes,
                  kMostTextBytes);
  }
  for (const auto& [name, value] : envs) {
    const bool ends_early =
        name.find('\0') != std::string::npos || value.find('\0') != std::string::npos;
    if (name.empty() || name.find('=') != std::string::npos || ends_early) {
      return Errorf(StatusCode::kInvalidArgument,
                    "it sets the environment variable '{}', which cannot be; name it without '='",
                    Quoted(name));
    }
  }
  return OkStatus();
}

/// What is shared must be there now; later it comes and goes with the pool.
Status CheckShared(const sdk::ComputeGrant& grant, const GrantLimits& limits) {
  const CpuSet& pool = limits.offer.shared;
  for (const sdk::ComputePart& part : grant.parts) {
    if (part.shared && !part.cpus.IsSubsetOf(pool)) {
      return Errorf(StatusCode::kInvalidArgument,
                    "it shares CPUs {} of which {} are not in the default pool, which is {}; share "
                    "those, or the whole pool",
                    ToString(part.cpus), ToString(part.cpus - pool), ToString(pool));
    }
  }
  if (grant.shares() && !limits.pool_is_followed) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it shares CPUs of the default pool, and there is no cpu plugin that keeps one; "
                  "start one, or give CPUs of the container's own only");
  }
  if (grant.shares() && grant.SharedOf(pool).Empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it shares CPUs and gives all of them to the container alone; leave some in the "
                  "default pool, which is {}",
                  ToString(pool));
  }
  return OkStatus();
}

}  // namespace

Status CheckGrant(const sdk::ComputeGrant& grant, const GrantLimits& limits) {
  const CpuSet all = grant.Cpus() | grant.Idle();
  const DriverOffer& offer = limits.offer;
  if (!all.IsSubsetOf(offer.available)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it gave CPUs {} of which {} were not offered; those that were are {}",
                  ToString(all), ToString(all - offer.available), ToString(offer.available));
  }
  if (all.Count() > limits.cpus) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it gave {} CPUs ({}) and the container requests {}, so that scheduler and node "
                  "would count differently; request as many as the driver gives",
                  all.Count(), ToString(all), limits.cpus);
  }
  if ((offer.shared - all - limits.machine.OfflineNow()).Empty() && !offer.shared.Empty()) {
    return Errorf(StatusCode::kResourceExhausted,
                  "CPUs {} of its own would empty the shared pool, which is {}; ask for fewer CPUs "
                  "or remove a pod",
                  ToString(all), ToString(offer.shared));
  }
  QRM_RETURN_IF_ERROR(CheckShared(grant, limits));
  return CheckTexts(grant.envs, grant.annotations);
}

Status CheckMems(const sdk::ComputeGrant& grant, const ResourceAllocation* memory) {
  if (grant.mems.Empty() || memory == nullptr || memory->oci_property != kCpusetMems) {
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const NumaMask given, NumaMask::Parse(memory->value));
  if (grant.mems.IsSubsetOf(given)) {
    return OkStatus();
  }
  return Errorf(
      StatusCode::kInvalidArgument,
      "it wants the container's memory on NUMA nodes {}, and the memory plugin gave it on "
      "{}; have the driver keep to the hint",
      ToString(grant.mems), ToString(given));
}

AllocationByResource RecordsOf(const std::string& resource, const sdk::ComputeGrant& grant,
                               const Machine& machine) {
  AllocationByResource records;
  ResourceAllocation cpus = Own(grant.Cpus(), machine);
  cpus.envs = grant.envs;
  cpus.annotations = grant.annotations;
  records[resource] = std::move(cpus);
  if (!grant.mems.Empty()) {
    records[resource + ".mems"] =
        ResourceAllocation{.oci_property = std::string(kCpusetMems), .value = ToString(grant.mems)};
  }
  return records;
}

ResourceAllocation WithheldBy(const sdk::ComputeGrant& grant, const Machine& machine,
                              const CpuSet& pool) {
  ResourceAllocation withheld = Own(grant.Cpus() | grant.Idle(), machine);
  if (grant.shares()) {
    withheld.may_share = ToString(grant.SharedOf(machine.cpu_set()));
    withheld.shares = ToString(grant.SharedOf(pool));
  }
  return withheld;
}

}  // namespace qrm::manager
