// Lists, changes and freezes the threads of a container.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/base/status.h"

namespace qrm::kernel {

/// The threads in the cgroup `directory` and its descendants, of cgroup v1 or v2. Errors: kNotFound
/// when the cgroup is gone, kFailedPrecondition when its threads are in a PID namespace that is not
/// visible to this process. Source: Linux Documentation/admin-guide/cgroup-v2.rst, "Threads";
/// cgroup-v1/cgroups.rst.
StatusOr<std::vector<pid_t>> ThreadsBelow(const std::string& directory);

/// Checks `threads`, repairs wrong ones, and returns their number. `clean`: how many previous
/// passes in a row found none.
using ThreadPass =
    std::function<StatusOr<std::size_t>(const std::vector<pid_t>& threads, int clean)>;

/// Runs `pass` over all threads of the cgroup `directory` until it finds nothing to repair twice in
/// a row. A fork copies its parent's values before the child is visible. A container that forks too
/// fast is frozen for the rest. Errors: kUnavailable when threads were missed, as `cannot <action>:
/// <number> were missed`; kNotFound when the cgroup is gone; those of `pass`. Source:
/// cgroup-v2.rst, "cgroup.freeze"; cgroup-v1/freezer-subsystem.rst.
Status RepairAllThreads(const std::string& directory, const std::string& action,
                        const ThreadPass& pass);

}  // namespace qrm::kernel
