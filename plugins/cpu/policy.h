// Decides which CPUs a container gets: pure functions of machine, configuration, state and request.
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
/// kInvalidArgument for a fraction of an exclusive CPU; kResourceExhausted with the free CPUs of
/// each node, and the roles that exclude the container.
StatusOr<HintList> CpuHints(const View& view, const ContainerRequest& request);

/// The allocation of a container, and what the state keeps of it.
struct Decision {
  ResourceAllocation allocation;
  std::optional<Holding> holding;  ///< set for exclusive CPUs
  std::string pool;                ///< else the pool; empty: its CPUs are not changed
  std::optional<PoolMap> pools;    ///< the new pools, if elastic ones change
};

/// Records `decision` for the container of `request` in `state`.
void Note(const CpuPluginConfig& config, const ContainerRequest& request, Decision decision,
          CpuState& state);

/// The CPUs for `request` within `hint` (empty nodes: anywhere). Errors: as CpuHints.
StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint);

}  // namespace qrm::cpu
