// Records what others wrote into our containers' cpusets and that ours replaced it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "api/base/mutex.h"
#include "api/resource.h"

namespace qrm::manager {

/// One cpuset that somebody else wrote over ours.
struct ForeignWrite {
  ContainerKey key;
  std::string property;  ///< CpusetCpus or CpusetMems
  std::string theirs;    ///< kernel list form
  std::string ours;
};

/// Counts repairs, and logs each container and foreign value once, however often it comes back.
///
/// Threads: any.
class ForeignWrites {
 public:
  void Note(const ForeignWrite& write);
  /// The container is gone: the same value in a later one of its name is news again.
  void Forget(const ContainerKey& key);
  uint64_t repairs() const;

 private:
  mutable Mutex mutex_;
  std::map<ContainerKey, std::set<std::string>> seen_ QRM_GUARDED_BY(mutex_);
  uint64_t repairs_ QRM_GUARDED_BY(mutex_) = 0;
};

}  // namespace qrm::manager
