// CPU use of pods, from their cgroups.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "api/base/status.h"
#include "plugins/cpu/sizing/pool_size.h"

namespace qrm::cpu {

/// Reads the cgroups that kubelet creates for pods.
/// Threads: one. Source: kubelet's cgroup names, "kubepods/burstable/podUID" and systemd's
/// "kubepods-burstable-podUID.slice"; Linux Documentation/admin-guide/cgroup-v2.rst, cpu.stat and
/// cpu.pressure.
class PodCgroups {
 public:
  /// `root` is where the cgroup v2 hierarchy is mounted.
  explicit PodCgroups(std::string root) : root_(std::move(root)) {}

  /// What `pods`, by UID, used since the last call; `now` is later than before. Leaves out pods
  /// that are new or have no cgroup. Cost: three directories, and two files per pod.
  /// Errors: kFailedPrecondition without kubelet's cgroups.
  StatusOr<UseByPod> Look(const std::set<std::string>& pods,
                          std::chrono::steady_clock::time_point now);

  /// Why the latest Look did not see how long threads waited, and what to do; empty: it did.
  const std::string& without_pressure() const { return without_pressure_; }

 private:
  /// The kernel's counters. Units: microseconds since the pod started.
  struct Counters {
    int64_t used = 0;
    int64_t stalled = 0;
  };
  std::map<std::string, std::string> Find(const std::set<std::string>& pods) const;

  const std::string root_;
  std::map<std::string, Counters> before_;  // by UID
  std::chrono::steady_clock::time_point looked_at_;
  std::string without_pressure_;
};

}  // namespace qrm::cpu
