// The CPUs that a compute driver may choose from, computed for each container and never stored.
#pragma once

#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

/// The CPUs that are sent to a driver.
struct DriverOffer {
  CpuSet available;  ///< the CPUs that it may choose from
  CpuSet shared;     ///< the current default pool
  CpuSet reserved;

  bool operator==(const DriverOffer&) const = default;
};

/// The node's CPUs as the cpu plugin reports them.
struct CpuAccount {
  std::vector<sdk::Pool> pools;
  AllocatableResource allocatable;
};

/// What a driver may give the container `key`: the free CPUs of the cpu plugin's default pool, and
/// CPUs of the pod's init containers by the records of `state`. Without a cpu plugin (null), all
/// CPUs that are not exclusive.
DriverOffer MakeOffer(const ContainerKey& key, ContainerType type, const Machine& machine,
                      const checkpoint::NodeState& state, const CpuAccount* account);

/// The NUMA nodes that could serve `cpus` of `offer`, since drivers give no hints. Errors:
/// kResourceExhausted if there are too few, with both numbers.
StatusOr<HintList> HintsOf(const DriverOffer& offer, double cpus, const Machine& machine);

}  // namespace qrm::manager
