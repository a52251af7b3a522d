// Remembers what runtimes were told and may not have written yet.
#pragma once

#include <chrono>
#include <map>

#include "api/base/mutex.h"
#include "api/id_set.h"
#include "api/resource.h"

namespace qrm::manager {

/// CPUs that the runtime is about to give to containers: it asks us before it writes an update to
/// their cgroups, and cannot tell that it has while it waits for our answer about another
/// container.
///
/// Threads: any.
class UpdatesUnderWay {
 public:
  /// Longer than a runtime takes for one; what was told before that is through, or failed.
  static constexpr std::chrono::seconds kLongest{5};

  /// The runtime is told now to give `cpus` to the container.
  void Note(const ContainerKey& key, CpuSet cpus);
  /// What it was told, of those that are to have some of `cpus`. Cost: O(updates of kLongest).
  std::map<ContainerKey, CpuSet> With(const CpuSet& cpus) const;
  /// The latest update of the container has been written.
  void Forget(const ContainerKey& key);

 private:
  struct Update {
    CpuSet cpus;
    std::chrono::steady_clock::time_point told_at;
  };

  mutable Mutex mutex_;
  std::map<ContainerKey, Update> updates_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
