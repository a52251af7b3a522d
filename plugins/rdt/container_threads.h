// The threads of a container, and stopping them all for a moment.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "api/base/status.h"

namespace qrm::rdt {

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

}  // namespace qrm::rdt
