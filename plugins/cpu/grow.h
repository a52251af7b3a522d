// Resizes in place: a container keeps the CPUs of its own that it has, or takes over those of its
// pod's ended containers.
#pragma once

#include <optional>

#include "api/id_set.h"
#include "plugins/cpu/room.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// `held`, what the container has, and as many CPUs of `room` as it wants more, near to those; on
/// no other NUMA node where `rule` says so, and as many on each where it says that. Where it wants
/// fewer, a part of what it has. Absent where that cannot be, and for a container that held
/// nothing.
std::optional<CpuSet> ResizedInPlace(const Machine& machine, const CpuSet& held, const Room& room,
                                     const ExclusiveRule& rule);

}  // namespace qrm::cpu
