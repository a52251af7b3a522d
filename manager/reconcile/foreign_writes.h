// Counts and logs corrections of cpuset drift: values of other writers that qrmd replaced.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "api/base/mutex.h"
#include "api/resource.h"

namespace qrm::manager {

/// A cpuset that another process wrote over qrmd's.
struct ForeignWrite {
  ContainerKey key;
  std::string property;  ///< CpusetCpus or CpusetMems
  std::string theirs;    ///< kernel list form
  std::string ours;
};

/// Counts corrections, and logs each foreign value of a container once.
///
/// Threads: any.
class ForeignWrites {
 public:
  /// `on_news` gets each value that is logged; it must only post.
  explicit ForeignWrites(std::function<void(const ForeignWrite&)> on_news =
                             [](const ForeignWrite&) {})
      : on_news_(std::move(on_news)) {}

  void Note(const ForeignWrite& write);
  /// The container is gone: the same value in a later container of its name is logged again.
  void Forget(const ContainerKey& key);
  uint64_t repairs() const;

 private:
  const std::function<void(const ForeignWrite&)> on_news_;
  mutable Mutex mutex_;
  std::map<ContainerKey, std::set<std::string>> seen_ QRM_GUARDED_BY(mutex_);
  uint64_t repairs_ QRM_GUARDED_BY(mutex_) = 0;
};

}  // namespace qrm::manager
