// The CPUs that a compute driver may choose from, computed for each container and never stored; the
// check of its answer, and the records of that.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "plugins/sdk/compute_driver.h"
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
  CpuSet current;  ///< available: exclusive CPUs that the container has already

  /// The default pool with the CPUs that a running container could give up.
  CpuSet PoolWithCurrent() const { return shared | current; }
  bool operator==(const DriverOffer&) const = default;
};

/// The node's CPUs as the cpu plugin reports them.
struct CpuAccount {
  std::vector<sdk::Pool> pools;
  AllocatableResource allocatable;
};

/// What a driver may give the container `key`: the free CPUs of the cpu plugin's default pool, and
/// the CPUs of the container and of the pod's init containers by the records of `state`. Without a
/// cpu plugin (null), all CPUs that are not exclusive to others.
DriverOffer MakeOffer(const ContainerKey& key, ContainerType type, const Machine& machine,
                      const checkpoint::NodeState& state, const CpuAccount* account);

/// The NUMA nodes that could serve `cpus` of `offer`, since drivers give no hints. Errors:
/// kResourceExhausted if there are too few, with both numbers.
StatusOr<HintList> HintsOf(const DriverOffer& offer, double cpus, const Machine& machine);

/// What an answer is checked against.
struct GrantLimits {
  const DriverOffer& offer;
  double cpus = 0;  ///< requested
  const Machine& machine;
  bool pool_is_followed = false;  ///< a cpu plugin reports changes of the default pool
};

/// OK if `grant` has only offered CPUs and no more than requested, shares only CPUs of the default
/// pool, leaves that pool at least one CPU, and has no text that a runtime would reject. Without
/// exclusive CPUs, it must share the whole pool.
/// Errors: kInvalidArgument for a wrong answer, kResourceExhausted for a pool that would be empty;
/// one sentence.
Status CheckGrant(const sdk::ComputeGrant& grant, const GrantLimits& limits);

/// OK if the memory nodes of `grant` are a subset of those of `memory`, the memory plugin's
/// allocation or null. Errors: kInvalidArgument naming both.
Status CheckMems(const sdk::ComputeGrant& grant, const ResourceAllocation* memory);

/// The records of `grant` under its driver's name `resource`: the container's exclusive CPUs, if
/// any, with variables and annotations, and its memory nodes if the driver gave any.
AllocationByResource RecordsOf(const std::string& resource, const sdk::ComputeGrant& grant,
                               const Machine& machine);

/// The same as an allocation of the cpu plugin: all CPUs that it must withhold, including idle
/// ones, and the CPUs that the container shares in `pool`, the default pool before the grant.
/// Without exclusive CPUs, the container is one of that pool.
ResourceAllocation WithheldBy(const sdk::ComputeGrant& grant, const Machine& machine,
                              const CpuSet& pool);

}  // namespace qrm::manager
