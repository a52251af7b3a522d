// Compute drivers as an extended resource: a pod that asks for one needs a node where it is ready.
#pragma once

#include <memory>

#include "scheduler/cache/handle.h"

namespace qrm::scheduler {

/// The type. Nodes report their drivers in the annotation kNodeDrivers.
inline constexpr char kDrivers[] = "compute-drivers";

/// Of a Node; qrmd writes it with `publish: [drivers]`.
inline constexpr char kNodeDrivers[] = "qrm.io/compute-drivers";

/// Pods that ask for a driver by annotation fit only on nodes where it is ready, or where other
/// plugins take its place. All other pods fit everywhere.
std::unique_ptr<Handle> MakeDriversHandle();

}  // namespace qrm::scheduler
