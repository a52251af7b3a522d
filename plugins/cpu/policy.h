// Decides where a container's CPUs come from: pure functions of machine, configuration, state and
// request.
#pragma once

#include <optional>
#include <string>

#include "api/hint.h"
#include "api/resource.h"
#include "api/status.h"
#include "plugins/cpu/config.h"
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
  std::string pool;                ///< else the pool
};

/// The CPUs for `request` within `hint` (empty nodes: anywhere). Errors: as CpuHints.
StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint);

/// The allocation of `granted` as it should be now: pools and the default pool may have changed
/// since.
ResourceAllocation CurrentAllocation(const View& view, const sdk::Grant& granted);

/// OK when `config` can work on `machine`: every CPU exists, nothing overlaps, and the default pool
/// is not empty. Errors: kInvalidArgument naming pool and CPUs.
Status CheckCpuConfig(const Machine& machine, const CpuPluginConfig& config);

}  // namespace qrm::cpu
