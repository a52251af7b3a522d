// Decides on which NUMA nodes a container's memory is: pure functions of machine, configuration,
// state and request.
#pragma once

#include <optional>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"
#include "plugins/memory/config.h"
#include "plugins/memory/state.h"

namespace qrm::memory {

/// How a container is bound: by its role, else by its QoS annotations (dedicated_cores with
/// numa_binding), else as a Guaranteed one where the configuration says so; absent when it is not
/// bound, as all but MAIN containers are. Errors: kInvalidArgument for unreadable annotations.
StatusOr<std::optional<BindingRule>> RuleFor(const MemoryPluginConfig& config,
                                             const ContainerRequest& request);

/// Who a bound container is to its neighbours; one that today's configuration would not bind
/// tolerates everyone and leaves the judgement to them.
placement::Tenant TenantOf(const MemoryPluginConfig& config, const ContainerRequest& request);

/// The NUMA nodes that could serve `request`; no preference for a container that is not bound.
/// Errors: kResourceExhausted naming what each node has free and who bars it; kInvalidArgument for
/// an amount that is no number of bytes.
StatusOr<HintList> MemoryHints(const View& view, const ContainerRequest& request);

/// What a container gets, and what the state remembers of it.
struct Decision {
  ResourceAllocation allocation;
  std::optional<Binding> binding;  ///< absent: recorded, without a knob
};

/// The nodes for `request` within `hint` (empty nodes: anywhere), with its bytes taken from them.
/// Errors: as MemoryHints.
StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint);

}  // namespace qrm::memory
