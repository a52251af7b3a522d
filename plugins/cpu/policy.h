// Decides where a container's CPUs come from: pure functions of machine, configuration, state and
// request.
#pragma once

#include <map>
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
};

/// The CPUs for `request` within `hint` (empty nodes: anywhere). Errors: as CpuHints.
StatusOr<Decision> PlaceContainer(const View& view, const ContainerRequest& request,
                                  const TopologyHint& hint);

/// Those of `grants` whose allocations are to change, because pools or the machine did.
/// Cost: O(containers), besides one allocation per pool.
std::map<ContainerKey, ResourceAllocation> ChangedAllocations(const View& view,
                                                              const sdk::Grants& grants);

}  // namespace qrm::cpu
