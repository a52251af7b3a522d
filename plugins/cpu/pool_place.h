// The CPUs of a container in a pool, and the pools with that container.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// A pool with one more container.
struct PoolPlace {
  std::string pool;              ///< or the instance on the chosen node
  CpuSet cpus;                   ///< that the container uses, with borrowed ones
  std::optional<PoolMap> pools;  ///< set when elastic pools change
};

/// The CPUs of the container of `request` in a pool, from which it asks for `guest`; within the
/// nodes of `hint` if the pool must choose one. Of instances by NUMA node, it uses the one that it
/// used before, else the one with most room; of several instances for its group, the one that its
/// pod uses, else one with room. Errors: kResourceExhausted if the pool with the
/// container has no CPU, or no room in its required place. Also if it would leave another pool
/// without CPUs or below its minimum.
StatusOr<PoolPlace> PlaceInPool(const View& view, const ContainerRequest& request,
                                const Guest& guest, const NumaMask& hint);

/// The nodes for a container of a pool that must stay on one node: the pool's node, else each node
/// with room; so of a pool with instances by NUMA node. Nodes where the pool gets most are
/// preferred. Of other pools, the nodes of their CPUs, for the memory and NICs of the container; no
/// preference with CPUs of all nodes. Errors: those of PlaceInPool.
StatusOr<HintList> PoolHints(const View& view, const ContainerRequest& request, const Guest& asked);

/// Of the preferred single nodes among `hints` for exclusive CPUs, prefers only those that leave
/// most CPUs beside the instance of `pool` there, which also serves the container's fraction.
void PreferRoomiest(const View& view, const ContainerRequest& request, const std::string& pool,
                    std::vector<TopologyHint>& hints);

}  // namespace qrm::cpu
