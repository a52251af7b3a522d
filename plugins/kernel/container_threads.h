// Lists, changes and freezes the threads of a container.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "api/base/status.h"

namespace qrm::kernel {

/// The threads in the cgroup `directory` and its descendants, of cgroup v1 or v2. Errors: kNotFound
/// when the cgroup is gone, kFailedPrecondition when its threads are in a PID namespace that is not
/// visible to this process. Source: Linux Documentation/admin-guide/cgroup-v2.rst, "Threads";
/// cgroup-v1/cgroups.rst.
StatusOr<std::vector<pid_t>> ThreadsBelow(const std::string& directory);

/// Keeps a cgroup frozen during its lifetime: nothing in it runs, so no fork is in progress.
class Frozen {
 public:
  /// Returns when the whole cgroup is frozen. Errors: kUnavailable after a fifth of a second,
  /// kFailedPrecondition if it cannot be frozen; it then continues to run. Source: cgroup-v2.rst,
  /// "cgroup.freeze"; cgroup-v1/freezer-subsystem.rst.
  static StatusOr<Frozen> Freeze(const std::string& directory);
  Frozen(Frozen&& other) noexcept;
  Frozen(const Frozen&) = delete;
  Frozen& operator=(const Frozen&) = delete;
  Frozen& operator=(Frozen&&) = delete;
  ~Frozen();

 private:
  Frozen(std::string file, std::string thawed)
      : file_(std::move(file)), thawed_(std::move(thawed)) {}

  std::string file_;
  std::string thawed_;  ///< what to write to thaw it
};

/// Checks `threads`, repairs wrong ones, and returns their number. `clean`: how many previous
/// passes in a row found none.
using ThreadPass =
    std::function<StatusOr<std::size_t>(const std::vector<pid_t>& threads, int clean)>;

/// Runs `pass` over all threads of the cgroup `directory` until it finds nothing to repair twice in
/// a row. A fork copies its parent's values before the child is visible. A container that forks too
/// fast is frozen for the rest. Errors: kUnavailable when threads were missed, as `cannot <action>:
/// <number> were missed`; kNotFound when the cgroup is gone; those of `pass`.
Status RepairAllThreads(const std::string& directory, const std::string& action,
                        const ThreadPass& pass);

}  // namespace qrm::kernel
