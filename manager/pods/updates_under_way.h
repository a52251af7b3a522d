// Remembers updates that the runtime has received and may not have written yet.
#pragma once

#include <chrono>
#include <map>

#include "api/base/mutex.h"
#include "api/id_set.h"
#include "api/resource.h"

namespace qrm::manager {

/// CPUs that the runtime is about to give to containers. It asks qrmd before it writes an update to
/// a cgroup, and cannot report the write while it waits for qrmd's answer about another container.
///
/// Threads: any.
class UpdatesUnderWay {
 public:
  /// Longer than a runtime takes for one update: older updates are written, or have failed.
  static constexpr std::chrono::seconds kLongest{5};

  struct Update {
    CpuSet cpus;
    std::chrono::steady_clock::time_point told_at;
  };

  /// The runtime was just asked to give `cpus` to the container.
  void Note(const ContainerKey& key, CpuSet cpus);
  /// The updates that give containers some of `cpus`. Cost: O(updates of kLongest).
  std::map<ContainerKey, Update> With(const CpuSet& cpus) const;
  /// The latest update of the container has been written.
  void Forget(const ContainerKey& key);

 private:
  mutable Mutex mutex_;
  std::map<ContainerKey, Update> updates_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
