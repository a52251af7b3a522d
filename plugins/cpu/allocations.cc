// Turns CPUs into allocations.
#include "plugins/cpu/allocations.h"

#include <cstdint>
#include <string>

#include "plugins/cpu/borrow.h"

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

/// The CPUs of the default pool that a container uses beside its own.
std::string SharesOf(const View& view, const Holding& holding) {
  return holding.may_share.Empty()
             ? std::string()
             : ToString(holding.may_share & UsedCpus(view, std::string(kDefaultPool)));
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

std::map<ContainerKey, ResourceAllocation> ChangedAllocations(const View& view,
                                                              const sdk::Grants& grants) {
  std::map<ContainerKey, ResourceAllocation> changed;
  for (const auto& [key, holding] : view.state.exclusive) {
    const auto grant = grants.find(key);
    if (grant == grants.end()) {
      continue;
    }
    const ResourceAllocation& given = grant->second.allocation;
    std::string shares = SharesOf(view, holding);
    if (given.value != ToString(holding.cpus)) {
      changed[key] = OwnCpus(view.machine, holding.cpus, false);
    } else if (given.shares != shares) {
      changed[key] = given;
    } else {
      continue;
    }
    changed[key].may_share = given.may_share;
    changed[key].shares = std::move(shares);
  }
  std::map<std::string, ResourceAllocation> by_pool;
  for (const auto& [key, guest] : view.state.shared) {
    auto now = by_pool.find(guest.pool);
    if (now == by_pool.end()) {
      const CpuSet cpus = UsedCpus(view, guest.pool);
      now = by_pool.emplace(guest.pool, ShareCpus(view.machine, cpus)).first;
    }
    const auto grant = grants.find(key);
    // An empty pool is the result of a repair after a restart: its containers keep what they have.
    if (grant != grants.end() && !now->second.value.empty() &&
        grant->second.allocation.value != now->second.value) {
      changed[key] = now->second;
    }
  }
  return changed;
}

}  // namespace qrm::cpu
