// Checks periodically what keys of the configuration point to, and what the process needs.
#pragma once

#include <string>
#include <vector>

#include "api/base/durations.h"
#include "api/base/mutex.h"

namespace qrm::manager {

class LiveContainers;

/// Finds what nothing else reports until a container needs it: a wrong or read-only cgroup-root, a
/// missing kubelet-state-dir, file handles that are used up, and a clock that jumped.
///
/// Threads: Look from one; problems any.
class NodeChecks {
 public:
  struct Paths {
    std::string cgroup_root;        ///< empty: not checked
    std::string kubelet_state_dir;  ///< empty: not checked
    bool writes_cpusets = false;
  };
  /// `live` outlives the checks.
  NodeChecks(Paths paths, const LiveContainers& live);

  /// Two clocks, read at the same time.
  struct Clocks {
    std::chrono::system_clock::time_point wall;
    std::chrono::steady_clock::time_point steady;

    static Clocks Now();
  };

  /// Cost: some system calls, and the cpusets of some containers.
  void Look(const Clocks& now);
  /// What the latest Look found: one sentence with the cure each.
  std::vector<std::string> problems() const;

 private:
  std::string CgroupProblem();
  std::string KubeletProblem() const;
  std::string ClockProblem(const Clocks& now);

  const Paths paths_;
  const LiveContainers& live_;
  bool found_none_ = false;  // the latest Look found no cgroup of a container
  Clocks latest_ = Clocks::Now();
  std::string jump_;  // the latest, as a sentence
  std::chrono::steady_clock::time_point jumped_at_;

  mutable Mutex mutex_;
  std::vector<std::string> problems_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
