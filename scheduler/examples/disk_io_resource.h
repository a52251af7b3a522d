// The proposal's user story: disk bandwidth, by class, for reading and writing.
#pragma once

#include <memory>

#include "scheduler/cache/handle.h"

namespace qrm::scheduler {

/// The type of the resource; the custom resource `nodediskiostatuses`, whose spec.classes.NAME has
/// `read` and `write` of node spec.nodeName; and the annotations of a pod that asks for a class and
/// for bandwidth in it. Units: bytes per second.
inline constexpr char kDiskIo[] = "disk-io";
inline constexpr char kDiskIoStatuses[] = "nodediskiostatuses.v1.disk-io.qrm.io";
inline constexpr char kDiskIoClass[] = "disk-io.qrm.io/class";
inline constexpr char kDiskIoRead[] = "disk-io.qrm.io/read";
inline constexpr char kDiskIoWrite[] = "disk-io.qrm.io/write";

/// Source: KEP-4187, "Disk IO Aware Scheduling".
std::unique_ptr<Handle> MakeDiskIoHandle();

}  // namespace qrm::scheduler
