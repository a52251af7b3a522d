// The threads of a container: listing them, changing them all, and stopping them for a moment.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "api/base/status.h"

namespace qrm::cgroup {

/// The threads in the cgroup `directory` and all below it, of cgroup v1 or v2. Errors: kNotFound
/// when the cgroup is gone, kFailedPrecondition when its threads are in a PID namespace that this
/// process does not see.
/// Source: Linux Documentation/admin-guide/cgroup-v2.rst, "Threads"; cgroup-v1/cgroups.rst.
StatusOr<std::vector<pid_t>> ThreadsBelow(const std::string& directory);

/// Keeps a cgroup frozen while it lives: nothing in it runs, so that no fork is under way.
class Frozen {
 public:
  /// Returns when the whole cgroup stands still. Errors: kUnavailable when it does not within
  /// a fifth of a second, kFailedPrecondition where it cannot be frozen; it runs on then.
  /// Source: cgroup-v2.rst, "cgroup.freeze"; cgroup-v1/freezer-subsystem.rst.
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
  std::string thawed_;  ///< what to write to it at the end
};

/// Looks at `threads`, repairs those that are not as they should be, and returns how many those
/// were. `clean` passes before it found none.
using ThreadPass =
    std::function<StatusOr<std::size_t>(const std::vector<pid_t>& threads, int clean)>;

/// Has `pass` go over all threads of the cgroup `directory` until it finds nothing to repair twice
/// in a row: a fork copies what its parent has before the child shows up. A container that forks
/// faster than that stands still for the rest.
/// Errors: kUnavailable when some are still missing, as `cannot <action>: <number> were missed`;
/// kNotFound when the cgroup is gone; those of `pass`.
Status RepairAllThreads(const std::string& directory, const std::string& action,
                        const ThreadPass& pass);

}  // namespace qrm::cgroup
