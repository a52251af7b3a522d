// QoS-class resources as an extended resource: a node has a class, for the pod's namespace, and a
// place of it is free.
#pragma once

#include <memory>

#include "scheduler/cache/handle.h"

namespace qrm::scheduler {

/// The type. What nodes offer is told by their annotation kNodeClasses.
inline constexpr char kClasses[] = "classes";

/// Counts what pods ask for. Classes that they have by default are not counted: only the node knows
/// whether there was a place for one.
std::unique_ptr<Handle> MakeClassesHandle();

}  // namespace qrm::scheduler
