// The CPUs of a container in a pool, and the pools with that container.
#pragma once

#include <optional>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// A pool with one more container.
struct PoolPlace {
  CpuSet cpus;                   ///< that the container uses, with borrowed ones
  std::optional<PoolMap> pools;  ///< set when elastic pools change
};

/// The CPUs of the container of `request` in a pool, from which it asks for `guest`; within the
/// nodes of `hint` if the pool must choose one. Errors: kResourceExhausted if the pool has no CPU
/// even with the container in it, leaves another pool without one or below its minimum, or has no
/// room in its required place.
StatusOr<PoolPlace> PlaceInPool(const View& view, const ContainerRequest& request,
                                const Guest& guest, const NumaMask& hint);

/// The nodes for a container of a pool that must stay on one node: the pool's node, else each node
/// with room, preferred where the pool gets most. No preference with other pools. Errors: those of
/// PlaceInPool.
StatusOr<HintList> PoolHints(const View& view, const ContainerRequest& request, const Guest& guest);

}  // namespace qrm::cpu
