// Brings all threads of a container into one resctrl group, and tells where they are.
#pragma once

#include <string>

#include "api/base/status.h"
#include "plugins/rdt/resctrl.h"

namespace qrm::rdt {

/// Moves every thread of the cgroup `directory` and of those below it to `group`, again and again
/// until twice in a row none is elsewhere, the second time as the threads' own files say: a fork
/// copies its parent's group before the child shows up. A container that forks faster than that
/// stands still for the rest. Cost: a small file read for each thread.
/// Errors: kUnavailable when some are still elsewhere, with how many; kNotFound when the cgroup is
/// gone; those of Resctrl.
/// Source: Linux Documentation/filesystems/resctrl.rst, "Resource allocation rules".
Status MoveAll(const Resctrl& resctrl, const std::string& directory, const std::string& group);

/// Empty when every thread is in `group`, else a sentence about those that are not. Errors:
/// kNotFound when the cgroup is gone; those of Resctrl.
StatusOr<std::string> FindElsewhere(const Resctrl& resctrl, const std::string& directory,
                                    const std::string& group);

/// The group as sentences name it.
std::string NameOfGroup(const std::string& group);

}  // namespace qrm::rdt
