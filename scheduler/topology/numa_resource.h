// The NUMA nodes of a node as an extended resource: a pod fits when the node itself will admit it.
#pragma once

#include <memory>

#include "scheduler/cache/handle.h"

namespace qrm::scheduler {

/// The type, and the annotation of a Node that has its configuration; see ReadNodeModel.
inline constexpr char kNuma[] = "numa";
inline constexpr char kNodeConfig[] = "qrm.io/node-config";

/// Reads each Node's annotation. A pod's place is that of its annotation, else what the node would
/// give it: the pods without one are placed after the others, in the order of their UIDs.
std::unique_ptr<Handle> MakeNumaHandle();

}  // namespace qrm::scheduler
