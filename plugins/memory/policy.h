// Decides which NUMA nodes a container's memory is on: pure functions of machine, configuration,
// state and request.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"
#include "plugins/memory/config.h"
#include "plugins/memory/state.h"
#include "topology/memory_flow.h"

namespace qrm::memory {

/// How a container is bound: by a rule, by kubelet's static policy, or not at all.
struct Placement {
  std::optional<BindingRule> rule;
  bool by_static_policy = false;
  std::string role;  ///< for its neighbours; empty for containers that are placed without a role
  std::string by;    ///< the configuration that decided this, for people
};

/// How a MAIN container is bound: by the role of the first rule that fits it, or else by its pod's
/// role. Otherwise by its QoS annotations (dedicated_cores with numa_binding). Otherwise, if
/// configured, a Guaranteed container by the static policy. Errors: kInvalidArgument for unreadable
/// annotations.
StatusOr<Placement> Classify(const MemoryPluginConfig& config, const ContainerRequest& request);

/// Which neighbours a bound container tolerates. If the current configuration would not bind it, it
/// tolerates all, so that only the rules of its neighbours count.
placement::Tenant TenantOf(const MemoryPluginConfig& config, const ContainerRequest& request);

/// The NUMA nodes that could serve `request`; no preference for a container that is not bound.
/// Errors: kResourceExhausted with the free memory of each node and the roles that exclude the
/// container; kInvalidArgument for an amount that is not a number of bytes.
StatusOr<HintList> MemoryHints(const View& view, const ContainerRequest& request);

/// The allocation of a container, and what the state keeps of it.
struct Decision {
  ResourceAllocation allocation;
  std::optional<Binding> binding;  ///< absent: recorded only, and not bound
  /// What ended init containers of the pod still hold, since the container reuses the rest.
  std::map<ContainerKey, std::vector<MemoryBlock>> inits;
  /// The ordinary memory of other containers by node, now that they made way.
  std::map<ContainerKey, NodeBytes> moved;
};

/// The nodes for `request` within `hint` (empty nodes: anywhere), with its bytes taken from them.
/// If the hint allows several sets of nodes, it keeps `held`, its current nodes (empty: none yet).
/// Errors: as MemoryHints.
StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint, const NumaMask& held = {});

/// Records `decision` for container `key` in `bindings`, from which it was made.
void Note(const ContainerKey& key, Decision decision, Bindings& bindings);

}  // namespace qrm::memory
