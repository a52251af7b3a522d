// Bounds the answers that clients do not read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "api/base/mutex.h"

namespace qrm::manager {

/// The answers of a server that are on their way, in the order in which they were given. gRPC keeps
/// each in memory until its client reads it, which may be never.
///
/// Threads: any.
class UnreadAnswers {
 public:
  /// More than `most_bytes` are kept only for moments.
  explicit UnreadAnswers(std::size_t most_bytes) : most_bytes_(most_bytes) {}

  struct Added {
    uint64_t number = 0;
    /// The connection with the oldest unread answer: the server ends it, to make room.
    /// Empty while there is room, or while the former one has yet to go.
    std::string to_disconnect;
  };
  /// Counts `answer`, which stays where it is until it is removed, as on its way to `peer`. Its
  /// `bytes` count once, to however many it goes.
  Added Add(const std::string& peer, const void* answer, std::size_t bytes);

  /// It was read, or its connection has ended. 0: none was given.
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
  std::string leaving_ QRM_GUARDED_BY(mutex_);  ///< was told to be disconnected
};

}  // namespace qrm::manager
