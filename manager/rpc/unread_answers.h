// Bounds the answers that clients do not read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "api/base/mutex.h"

namespace qrm::manager {

/// A server's unread answers, in the order in which they were given. gRPC keeps an answer in memory
/// until its client reads it, which may be never.
///
/// Threads: any.
class UnreadAnswers {
 public:
  /// More than `most_bytes` are kept only for a moment.
  explicit UnreadAnswers(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  struct Added {
    uint64_t number = 0;
    /// The connection with the oldest unread answer, which the server must close to make room.
    /// Empty while there is room, or until the previous such connection has ended.
    std::string to_disconnect;
  };
  /// Counts `answer` as unread by `peer`. Its address stays the same until it is removed. Its
  /// `bytes` count once, even if several peers get it.
  Added Add(const std::string& peer, const void* answer, std::size_t bytes);

  /// The answer was read, or its connection has ended. 0: no answer was given.
  void Remove(uint64_t number);

  std::size_t bytes() const;

 private:
  struct Unread {
    std::string peer;
    const void* answer = nullptr;
  };
  struct Kept {
    std::size_t bytes = 0;
    std::size_t times = 0;
  };

  const std::size_t most_bytes_;
  mutable Mutex mutex_;
  uint64_t latest_ QRM_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Unread> unread_ QRM_GUARDED_BY(mutex_);
  std::map<const void*, Kept> kept_ QRM_GUARDED_BY(mutex_);
  std::size_t bytes_ QRM_GUARDED_BY(mutex_) = 0;
  std::string leaving_ QRM_GUARDED_BY(mutex_);  ///< the peer that is being disconnected
};

}  // namespace qrm::manager
