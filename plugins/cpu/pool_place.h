// What a container that shares a pool runs on, and what the pools are with it.
#pragma once

#include <optional>
#include <string>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// A pool with one more container.
struct PoolPlace {
  CpuSet cpus;                   ///< that the container uses, borrowed ones too
  std::optional<PoolMap> pools;  ///< set when elastic ones change
};

/// The place of the container of `request` in a pool, of which it wants what `guest` says. Errors:
/// kResourceExhausted when the pool has no CPU of its own even with the container in it, or would
/// leave another without one or below its minimum.
StatusOr<PoolPlace> PlaceInPool(const View& view, const ContainerRequest& request,
                                const Guest& guest);

}  // namespace qrm::cpu
