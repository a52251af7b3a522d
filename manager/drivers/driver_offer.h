// What a compute driver may choose from, computed anew for each container and never stored.
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

/// CPUs as a driver is told of them.
struct DriverOffer {
  CpuSet available;  ///< it may choose from these
  CpuSet shared;     ///< the pool of containers without CPUs of their own, as it is now
  CpuSet reserved;

  bool operator==(const DriverOffer&) const = default;
};

/// What the cpu plugin says of the node's CPUs.
struct CpuAccount {
  std::vector<sdk::Pool> pools;
  AllocatableResource allocatable;
};

/// What the container `key` may be given by a driver: what the cpu plugin could give away of its
/// default pool, and what init containers of the pod lend it by the records of `state`. Without a
/// cpu plugin (null), all that nobody owns.
DriverOffer MakeOffer(const ContainerKey& key, ContainerType type, const Machine& machine,
                      const checkpoint::NodeState& state, const CpuAccount* account);

/// The NUMA nodes that could serve `cpus` of `offer`: a driver gives no hints itself. Errors:
/// kResourceExhausted when there are too few, with both numbers.
StatusOr<HintList> HintsOf(const DriverOffer& offer, double cpus, const Machine& machine);

}  // namespace qrm::manager
