// Bounds the answers that clients do not read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "api/base/mutex.h"

namespace qrm::manager {

/// A server's unread answers, in the order in which they were given. gRPC keeps an answer in memory
/// until its client reads it, which may be never.
///
/// Threads: any.
class UnreadAnswers {
 public:
  using Disconnect = std::function<void(const std::string& peer)>;
  using Make = std::function<void()>;

  /// More than `most_bytes` are kept only for a moment: then `disconnect` closes the connection
  /// with the oldest unread answer, and the next one when that connection has ended. An answer that
  /// is alone, and that no other waits for, may have any size.
  UnreadAnswers(std::size_t most_bytes, Disconnect disconnect)
      : most_bytes_(most_bytes), disconnect_(std::move(disconnect)) {}

  /// Runs `make`, which makes an answer and adds it, once there is room: on this thread, or on one
  /// that removes an answer. Answers are made one at a time, in the order of the calls, so that
  /// only one exceeds the room.
  void WhenRoom(Make make);

  /// Counts `answer` as unread by `peer`, and returns its number. Its address stays the same until
  /// it is removed. Its `bytes` count once, even if several peers get it.
  uint64_t Add(const std::string& peer, const void* answer, std::size_t bytes);

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

  void MakeRoom();
  void MakeWaiting();

  const std::size_t most_bytes_;
  const Disconnect disconnect_;
  mutable Mutex mutex_;
  uint64_t latest_ QRM_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Unread> unread_ QRM_GUARDED_BY(mutex_);
  std::map<const void*, Kept> kept_ QRM_GUARDED_BY(mutex_);
  std::size_t bytes_ QRM_GUARDED_BY(mutex_) = 0;
  std::string leaving_ QRM_GUARDED_BY(mutex_);  ///< the peer that is being disconnected
  std::deque<Make> waiting_ QRM_GUARDED_BY(mutex_);
  bool making_ QRM_GUARDED_BY(mutex_) = false;  ///< a thread runs what waits
};

}  // namespace qrm::manager
