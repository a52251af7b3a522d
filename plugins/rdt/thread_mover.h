// Moves all threads of a container into one resctrl group, and finds threads in other groups.
#pragma once

#include <string>

#include "api/base/status.h"
#include "plugins/rdt/resctrl.h"

namespace qrm::rdt {

/// Moves every thread of the cgroup `directory` and its descendants to `group`. Repeats this until
/// two checks in a row find no other thread, the second one by the threads' own files. A fork
/// copies its parent's group before the child is visible. A container that forks too fast is frozen
/// for the rest. Cost: one small file read per thread. Errors: kUnavailable, with the number of
/// threads still elsewhere; kNotFound when the cgroup is gone; those of Resctrl. Source: Linux
/// Documentation/filesystems/resctrl.rst, "Resource allocation rules".
Status MoveAll(const Resctrl& resctrl, const std::string& directory, const std::string& group);

/// Empty if every thread is in `group`, else a sentence about the other threads. Errors: kNotFound
/// when the cgroup is gone; those of Resctrl.
StatusOr<std::string> FindElsewhere(const Resctrl& resctrl, const std::string& directory,
                                    const std::string& group);

/// The group's name in messages.
std::string NameOfGroup(const std::string& group);

}  // namespace qrm::rdt
