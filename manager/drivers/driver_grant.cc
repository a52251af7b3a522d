// Subtracts reserved and exclusive CPUs, and CPUs of other pools; compares CPU sets, and creates
// allocations.
#include "manager/drivers/driver_grant.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/container_turns.h"
#include "manager/state/allocation_check.h"
#include "plugins/cpu/config/config.h"
#include "topology/hint_generation.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

CpuSet DefaultPool(const std::vector<sdk::Pool>& pools) {
  const auto found = std::find_if(pools.begin(), pools.end(), [](const sdk::Pool& pool) {
    return pool.name == cpu::kDefaultPool;
  });
  return found == pools.end() ? CpuSet() : found->cpus;
}

/// CPUs of the pod's init containers, which have ended before the container starts.
CpuSet Lent(const ContainerKey& key, ContainerType type, const std::vector<ExclusiveCpus>& owners) {
  CpuSet lent;
  CpuSet lasting;
  for (const ExclusiveCpus& owner : owners) {
    if (owner.pod.uid == key.pod_uid && owner.container != key.container) {
      const bool in_turn = owner.type == ContainerType::kInit && RunInTurn(owner.type, type);
      (in_turn ? lent : lasting) |= owner.cpus;
    }
  }
  return lent - lasting;
}

ResourceAllocation Pinned(const CpuSet& cpus, const Machine& machine) {
  ResourceAllocation allocation{.oci_property = std::string(kCpusetCpus),
                                .value = ToString(cpus),
                                .is_scalar_resource = true,
                                .quantity = static_cast<double>(cpus.Count())};
  for (const NumaNode& node : machine.nodes()) {
    if (const int count = (node.cpus & cpus).Count(); count > 0) {
      allocation.amount_by_node[static_cast<uint64_t>(node.id)] = static_cast<uint64_t>(count);
    }
  }
  return allocation;
}

ResourceAllocation Own(const CpuSet& cpus, const Machine& machine) {
  ResourceAllocation allocation = Pinned(cpus, machine);
  allocation.exclusive = true;
  allocation.hints = std::vector<TopologyHint>{{.nodes = machine.NodesOf(cpus), .preferred = true}};
  return allocation;
}

/// Limit for all variables and annotations together, which pass through the runtime at creation.
constexpr std::size_t kMostTextBytes = 64 << 10;

/// Rejects what the runtime would reject with a less clear error.
Status CheckTexts(const StringMap& envs, const StringMap& annotations) {
  std::size_t bytes = 0;
  for (const StringMap* texts : {&envs, &annotations}) {
    for (const auto& [name, value] : *texts) {
      bytes += name.size() + value.size();
    }
  }
  if (bytes > kMostTextBytes) {
    return Errorf(StatusCode::kInvalidArgument,
                  "its variables and annotations have {} bytes; give at most {}", bytes,
                  kMostTextBytes);
  }
  for (const auto& [name, value] : envs) {
    const bool ends_early =
        name.find('\0') != std::string::npos || value.find('\0') != std::string::npos;
    if (name.empty() || name.find('=') != std::string::npos || ends_early) {
      return Errorf(StatusCode::kInvalidArgument,
                    "it sets the environment variable '{}', which is not valid; use a name without "
                    "'=' and no zero bytes",
                    Quoted(name));
    }
  }
  return OkStatus();
}

/// Shared CPUs must be in the pool now; later they change with the pool.
Status CheckShared(const sdk::ComputeGrant& grant, const GrantLimits& limits) {
  const CpuSet pool = limits.offer.PoolWithCurrent();
  for (const sdk::ComputePart& part : grant.parts) {
    if (part.shared && !part.cpus.IsSubsetOf(pool)) {
      return Errorf(StatusCode::kInvalidArgument,
                    "it shares CPUs {} of which {} are not in the default pool, which is {}; share "
                    "CPUs of that pool, or the whole pool",
                    ToString(part.cpus), ToString(part.cpus - pool), ToString(pool));
    }
  }
  if (grant.shares() && !limits.pool_is_followed) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it shares CPUs of the default pool, but no cpu plugin has such a pool; start a "
                  "cpu plugin, or give exclusive CPUs only");
  }
  const bool has_whole_pool = std::ranges::any_of(
      grant.parts, [](const sdk::ComputePart& part) { return part.shared && part.cpus.Empty(); });
  if (grant.Cpus().Empty() && !has_whole_pool) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it gives CPUs {} of the default pool and no others, and the pool may lose them; "
                  "share the whole pool, or give an exclusive CPU beside them",
                  ToString(grant.SharedOf(pool)));
  }
  if (grant.shares() && grant.SharedOf(pool).Empty()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it shares CPUs but makes all of them exclusive; leave some in the default pool, "
                  "which is {}",
                  ToString(pool));
  }
  return OkStatus();
}

}  // namespace

DriverOffer MakeOffer(const ContainerKey& key, ContainerType type, const Machine& machine,
                      const checkpoint::NodeState& state, const CpuAccount* account) {
  DriverOffer offer;
  CpuSet owned;
  const std::vector<ExclusiveCpus> owners = FindExclusiveCpus(state);
  for (const ExclusiveCpus& owner : owners) {
    const bool is_own = owner.pod.uid == key.pod_uid && owner.container == key.container;
    (is_own ? offer.current : owned) |= owner.cpus;
  }
  if (account == nullptr) {
    offer.shared = machine.cpu_set() - owned - offer.current;
    offer.available = offer.shared;
  } else {
    offer.shared = DefaultPool(account->pools);
    offer.reserved = machine.cpu_set() - account->allocatable.allocatable_cpus;
    offer.available = offer.shared - offer.reserved - owned;
  }
  offer.available |= Lent(key, type, owners) | offer.current;
  offer.available -= machine.OfflineNow();
  return offer;
}

StatusOr<HintList> HintsOf(const DriverOffer& offer, double cpus, const Machine& machine) {
  const double count = std::ceil(cpus);
  if (offer.available.Count() < count) {
    return Errorf(StatusCode::kResourceExhausted,
                  "it requests {} CPUs, but only {} are free ({}); request fewer CPUs or delete a "
                  "pod",
                  cpus, offer.available.Count(), ToString(offer.available));
  }
  NodeAmounts amounts;
  for (const NumaNode& node : machine.nodes()) {
    amounts.total[node.id] = (node.cpus - offer.reserved).Count();
    amounts.free[node.id] = (node.cpus & offer.available).Count();
  }
  return GenerateHints(machine, count, amounts);
}

Status CheckGrant(const sdk::ComputeGrant& grant, const GrantLimits& limits) {
  const CpuSet all = grant.Cpus() | grant.Idle();
  const DriverOffer& offer = limits.offer;
  if (!all.IsSubsetOf(offer.available)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "it gave CPUs {} of which {} were not offered; the offer is {}", ToString(all),
                  ToString(all - offer.available), ToString(offer.available));
  }
  if (all.Count() > limits.cpus) {
    return Errorf(
        StatusCode::kInvalidArgument,
        "it gave {} CPUs ({}), but the container requests {}; request as many CPUs as the "
        "driver gives",
        all.Count(), ToString(all), limits.cpus);
  }
  if ((offer.PoolWithCurrent() - all - limits.machine.OfflineNow()).Empty() &&
      !offer.shared.Empty()) {
    return Errorf(StatusCode::kResourceExhausted,
                  "exclusive CPUs {} would empty the shared pool, which is {}; request fewer CPUs "
                  "or delete a pod",
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
      "it wants the container's memory on NUMA nodes {}, but the memory plugin allocated it on {}; "
      "choose nodes with as much free memory, or use a memory plugin that follows hints",
      ToString(grant.mems), ToString(given));
}

AllocationByResource RecordsOf(const std::string& resource, const sdk::ComputeGrant& grant,
                               const Machine& machine) {
  AllocationByResource records;
  ResourceAllocation cpus;  // the cpu plugin's record has the pool
  if (!grant.Cpus().Empty()) {
    cpus = Own(grant.Cpus(), machine);
  }
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
  const CpuSet own = grant.Cpus() | grant.Idle();
  if (own.Empty()) {
    ResourceAllocation shared = Pinned(pool, machine);
    shared.shares_of = cpu::kDefaultPool;  // whatever the cpu plugin's rules say of the container
    return shared;
  }
  ResourceAllocation withheld = Own(own, machine);
  if (grant.shares()) {
    withheld.may_share = ToString(grant.SharedOf(machine.cpu_set()));
    withheld.shares = ToString(grant.SharedOf(pool));
  }
  return withheld;
}

}  // namespace qrm::manager
