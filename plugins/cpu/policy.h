// Decides where a container's CPUs come from: pure functions of machine, configuration, state and
// request.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// The NUMA nodes that could serve `request`; no preference for containers of a pool. Errors:
/// kInvalidArgument for a fraction of an exclusive CPU; kResourceExhausted naming what each node
/// has free and who bars it.
StatusOr<HintList> CpuHints(const View& view, const ContainerRequest& request);

/// What a container gets, and what the state remembers of it.
struct Decision {
  ResourceAllocation allocation;
  std::optional<Holding> holding;  ///< set for CPUs of its own
  std::string pool;                ///< else the pool; empty for a container that is left alone
  std::optional<PoolMap> pools;    ///< what the pools are then, where elastic ones changed
};

/// Notes in `state` that the container of `request` has what `decision` gave it.
void Note(const CpuPluginConfig& config, const ContainerRequest& request, Decision decision,
          CpuState& state);

/// The CPUs for `request` within `hint` (empty nodes: anywhere). Errors: as CpuHints.
StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint);

}  // namespace qrm::cpu
