// QoS-class resources as an extended resource: a node has a class, for the pod's namespace, and a
// place of it is free.
#pragma once

#include <memory>

#include "scheduler/cache/handle.h"

namespace qrm::scheduler {

/// The type. Nodes report their classes in the annotation kNodeClasses.
inline constexpr char kClasses[] = "classes";

/// Counts the classes that pods ask for. Default classes are not counted: only the node knows
/// whether it had capacity for one.
std::unique_ptr<Handle> MakeClassesHandle();

}  // namespace qrm::scheduler
