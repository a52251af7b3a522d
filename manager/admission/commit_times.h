// Remembers how long the commits of the latest admissions took, which is known only once their
// traces are on disk.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>

#include "api/base/mutex.h"
#include "api/resource.h"

namespace qrm::manager {

/// A table in memory, since writing a commit's time would be another commit.
///
/// Threads: any. Cost: Note O(1), Find O(capacity).
class CommitTimes {
 public:
  using Time = std::chrono::system_clock::time_point;

  /// Keeps the latest `capacity` entries.
  explicit CommitTimes(std::size_t capacity) : capacity_(capacity) {}

  /// The decision of `decided` about `key` is on disk after `took`.
  void Note(const ContainerKey& key, Time decided, std::chrono::nanoseconds took);
  /// Absent for a decision that was not committed in this process, or too long ago.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> Find(const ContainerKey& key,
                                                             Time decided) const;

 private:
  struct Entry {
    ContainerKey key;
    Time decided;
    std::chrono::nanoseconds took;
  };

  const std::size_t capacity_;
  mutable Mutex mutex_;
  std::deque<Entry> entries_ QRM_GUARDED_BY(mutex_);  // oldest first
};

}  // namespace qrm::manager
