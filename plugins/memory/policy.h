// Decides on which NUMA nodes a container's memory is: pure functions of machine, configuration,
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
  std::string role;  ///< as its neighbours see it; empty for those placed without one
  std::string by;    ///< what in the configuration says so, for people
};

/// The place of a MAIN container by the role of the first rule that fits it, or else its pod's;
/// else by its QoS annotations (dedicated_cores with numa_binding); else, where the configuration
/// says so, that of a Guaranteed container by the static policy. Errors: kInvalidArgument for
/// unreadable annotations.
StatusOr<Placement> Classify(const MemoryPluginConfig& config, const ContainerRequest& request);

/// What a bound container tolerates as its neighbours; one that today's configuration would not
/// bind tolerates everyone, so that only the others' rules count.
rules::Tenant TenantOf(const MemoryPluginConfig& config, const ContainerRequest& request);

/// The NUMA nodes that could serve `request`; no preference for a container that is not bound.
/// Errors: kResourceExhausted naming what each node has free and who bars it; kInvalidArgument for
/// an amount that is no number of bytes.
StatusOr<HintList> MemoryHints(const View& view, const ContainerRequest& request);

/// What a container gets, and what the state remembers of it.
struct Decision {
  ResourceAllocation allocation;
  std::optional<Binding> binding;  ///< absent: recorded, without a knob
  /// What ended init containers of the pod hold from now on, since the container uses the rest.
  std::map<ContainerKey, std::vector<MemoryBlock>> inits;
  /// How the ordinary memory of others is split now that they have made way.
  std::map<ContainerKey, NodeBytes> moved;
};

/// The nodes for `request` within `hint` (empty nodes: anywhere), with its bytes taken from them.
/// Of several that the hint speaks of it keeps `held`, which are what it has (empty: nothing yet).
/// Errors: as MemoryHints.
StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint, const NumaMask& held = {});

/// Makes `decision` about container `key` part of the `bindings` that it was made on.
void Note(const ContainerKey& key, Decision decision, Bindings& bindings);

}  // namespace qrm::memory
