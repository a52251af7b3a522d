// Watches the kernel's cpusets all the time, for CPUs that change their owner.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "api/base/cond_var.h"
#include "api/base/mutex.h"
#include "api/id_set.h"

namespace qrm::test {

/// The directory of cgroups of containers with the cgroup parent `parent`.
std::filesystem::path CpusetsBelow(const std::string& parent);

/// Reads the cpusets of containers below a directory, once a millisecond.
class CpusetWatcher {
 public:
  struct Watched {
    std::filesystem::path root;
    std::string owner;  ///< is in the path of the new owner's cgroup, and its sandbox's
    int cpus = 1;       ///< it has so many; its sandbox has all
    std::vector<std::string> others;  ///< ids of containers that must have none of these
  };

  explicit CpusetWatcher(Watched watched);
  CpusetWatcher(const CpusetWatcher&) = delete;
  CpusetWatcher& operator=(const CpusetWatcher&) = delete;
  ~CpusetWatcher();

  /// The result until now is complete after it.
  void Stop();
  // After Stop.
  int looks_at_owner() const { return looks_at_owner_; }
  const std::vector<std::string>& overlaps() const { return overlaps_; }

 private:
  void Run();
  void Look();
  bool IsOther(const std::string& path) const;

  const Watched watched_;
  Mutex mutex_;
  CondVar stopped_;
  bool is_stopped_ QRM_GUARDED_BY(mutex_) = false;
  int looks_at_owner_ = 0;
  std::vector<std::string> overlaps_;
  std::thread thread_;
};

}  // namespace qrm::test
