// What a container that shares a pool runs on, and what the pools are with it.
#pragma once

#include <optional>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// A pool with one more container.
struct PoolPlace {
  CpuSet cpus;                   ///< that the container uses, borrowed ones too
  std::optional<PoolMap> pools;  ///< set when elastic ones change
};

/// The place of the container of `request` in a pool, of which it wants what `guest` says, within
/// the nodes of `hint` where the pool is to choose one. Errors: kResourceExhausted when the pool
/// has no CPU of its own even with the container in it, or would leave another without one or below
/// its minimum; or when it has no room in the place that its rule requires.
StatusOr<PoolPlace> PlaceInPool(const View& view, const ContainerRequest& request,
                                const Guest& guest, const NumaMask& hint);

/// The nodes for a container of a pool that must stay on one: that of the pool, else each that has
/// room for it, preferred where the pool gets most; no preference with other pools. Errors: those
/// of PlaceInPool.
StatusOr<HintList> PoolHints(const View& view, const ContainerRequest& request, const Guest& guest);

}  // namespace qrm::cpu
