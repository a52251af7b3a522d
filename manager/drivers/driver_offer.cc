// Subtracts reserved and exclusive CPUs, and CPUs of other pools.
#include "manager/drivers/driver_offer.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "api/base/errorf.h"
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

}  // namespace

DriverOffer MakeOffer(const ContainerKey& key, ContainerType type, const Machine& machine,
                      const checkpoint::NodeState& state, const CpuAccount* account) {
  DriverOffer offer;
  CpuSet owned;
  const std::vector<ExclusiveCpus> owners = FindExclusiveCpus(state);
  for (const ExclusiveCpus& owner : owners) {
    owned |= owner.cpus;
  }
  if (account == nullptr) {
    offer.shared = machine.cpu_set() - owned;
    offer.available = offer.shared;
  } else {
    offer.shared = DefaultPool(account->pools);
    offer.reserved = machine.cpu_set() - account->allocatable.allocatable_cpus;
    offer.available = offer.shared - offer.reserved - owned;
  }
  offer.available |= Lent(key, type, owners);
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

}  // namespace qrm::manager
