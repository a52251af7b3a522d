// Counts and logs corrections of cpuset drift: values of other writers that qrmd replaced.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/base/durations.h"
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

/// A container whose cpuset another process overwrites again and again.
struct LastingWriter {
  ForeignWrite latest;
  uint64_t times = 0;
};

/// Counts corrections, and logs each foreign value of a container once.
///
/// Threads: any.
class ForeignWrites {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// So many corrections make a lasting writer, unless there was none for kQuiet.
  static constexpr uint64_t kLasting = 10;
  static constexpr std::chrono::minutes kQuiet{5};

  /// `on_news` gets each value that is logged; it must only post.
  explicit ForeignWrites(std::function<void(const ForeignWrite&)> on_news =
                             [](const ForeignWrite&) {})
      : on_news_(std::move(on_news)) {}

  void Note(const ForeignWrite& write, Time now = std::chrono::steady_clock::now());
  std::vector<LastingWriter> Lasting(Time now = std::chrono::steady_clock::now()) const;
  /// The container is gone: the same value in a later container of its name is logged again.
  void Forget(const ContainerKey& key);
  uint64_t repairs() const;

 private:
  struct Seen {
    std::set<std::string> values;
    LastingWriter writer;
    Time at;  // of the latest write
  };

  const std::function<void(const ForeignWrite&)> on_news_;
  mutable Mutex mutex_;
  std::map<ContainerKey, Seen> seen_ QRM_GUARDED_BY(mutex_);
  uint64_t repairs_ QRM_GUARDED_BY(mutex_) = 0;
};

}  // namespace qrm::manager
