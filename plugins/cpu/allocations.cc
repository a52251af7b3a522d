// Turns CPUs into allocations.
#include "plugins/cpu/allocations.h"

#include <cstdint>
#include <string>

#include "plugins/cpu/pools.h"

namespace qrm::cpu {
namespace {

std::map<uint64_t, uint64_t> AmountByNode(const Machine& machine, const CpuSet& cpus) {
  std::map<uint64_t, uint64_t> amounts;
  for (const NumaNode& node : machine.nodes()) {
    if (const int count = (node.cpus & cpus).Count(); count > 0) {
      amounts[static_cast<uint64_t>(node.id)] = static_cast<uint64_t>(count);
    }
  }
  return amounts;
}

/// The CPUs of a pool that a container uses beside its exclusive CPUs.
CpuSet SharesOf(const View& view, const Holding& holding) {
  return holding.Shares() ? holding.may_share & UsedCpus(view, holding.beside.pool) : CpuSet();
}

}  // namespace

ResourceAllocation ShareCpus(const Machine& machine, const CpuSet& cpus) {
  ResourceAllocation allocation = sdk::PinCpus(cpus);
  allocation.amount_by_node = AmountByNode(machine, cpus);
  return allocation;
}

ResourceAllocation OwnCpus(const Machine& machine, const CpuSet& cpus, bool preferred) {
  ResourceAllocation allocation = ShareCpus(machine, cpus);
  allocation.exclusive = true;
  allocation.hints = {{.nodes = machine.NodesOf(cpus), .preferred = preferred}};
  return allocation;
}

void ShareBeside(const Holding& holding, const CpuSet& shares, ResourceAllocation& allocation) {
  allocation.may_share = ToString(holding.may_share);
  allocation.shares = ToString(shares);
  if (!allocation.shares_of.empty()) {
    allocation.envs[kOwnCpusEnv] = allocation.value;
    allocation.envs[kSharedCpusEnv] = allocation.shares;
  }
}

std::map<ContainerKey, ResourceAllocation> ChangedAllocations(const View& view,
                                                              const sdk::Grants& grants) {
  std::map<ContainerKey, ResourceAllocation> changed;
  for (const auto& [key, holding] : view.state.exclusive) {
    const auto grant = grants.find(key);
    if (grant == grants.end()) {
      continue;
    }
    const ResourceAllocation& given = grant->second.allocation;
    const CpuSet shares = SharesOf(view, holding);
    const bool same_own = given.value == ToString(holding.cpus);
    if (same_own && given.shares == ToString(shares)) {
      continue;
    }
    ResourceAllocation& now = changed[key];
    now = same_own ? given : OwnCpus(view.machine, holding.cpus, false);
    now.grown = ToString(holding.grown);
    now.lacks = holding.lost;
    now.shares_of = given.shares_of.empty() ? std::string() : holding.beside.pool;
    ShareBeside(holding, shares, now);
  }
  std::map<std::string, ResourceAllocation> by_pool;
  for (const auto& [key, guest] : view.state.shared) {
    auto now = by_pool.find(guest.pool);
    if (now == by_pool.end()) {
      const CpuSet cpus = UsedCpus(view, guest.pool);
      now = by_pool.emplace(guest.pool, ShareCpus(view.machine, cpus)).first;
    }
    const auto grant = grants.find(key);
    // Repairs after a restart can empty a pool: its containers keep their CPUs.
    if (grant != grants.end() && !now->second.value.empty() &&
        grant->second.allocation->value != now->second.value) {
      ResourceAllocation& allocation = changed[key] = now->second;
      allocation.shares_of = grant->second.allocation->shares_of;
      allocation.lacks = guest.lost;
    }
  }
  return changed;
}

}  // namespace qrm::cpu
