// What pods use, by the kernel's accounts of their cgroups.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "api/base/status.h"
#include "plugins/cpu/sizing/use.h"

namespace qrm::cpu {

/// Looks at the cgroups that kubelet makes for pods.
/// Threads: one. Source: kubelet's cgroup names, "kubepods/burstable/podUID" and systemd's
/// "kubepods-burstable-podUID.slice"; Linux Documentation/admin-guide/cgroup-v2.rst, cpu.stat and
/// cpu.pressure.
class PodCgroups {
 public:
  /// `root` is where the hierarchy of cgroup v2 is mounted.
  explicit PodCgroups(std::string root) : root_(std::move(root)) {}

  /// What `pods`, by UID, did since the last look, `now` being later; those that are new, or whose
  /// cgroup is not found, are left out. Cost: three directories, and two files a pod.
  /// Errors: kFailedPrecondition when kubelet's cgroups are not there.
  StatusOr<UseByPod> Look(const std::set<std::string>& pods,
                          std::chrono::steady_clock::time_point now);

 private:
  /// The kernel's counters. Units: microseconds since the pod began.
  struct Counters {
    int64_t used = 0;
    int64_t stalled = 0;
  };
  std::map<std::string, std::string> Find(const std::set<std::string>& pods) const;

  const std::string root_;
  std::map<std::string, Counters> before_;  // by UID
  std::chrono::steady_clock::time_point looked_at_;
};

}  // namespace qrm::cpu
