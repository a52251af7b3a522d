// Prevents two qrmd from using the same state directory.
#pragma once

#include <string>

#include "api/base/status.h"

namespace qrm::manager {

/// Holds `<directory>/qrmd.lock` until it is destroyed or the process ends, even by a crash.
/// Source: flock(2).
class StateLock {
 public:
  /// Creates `directory` with mode 0700 if it is missing. If it belongs to qrmd's own user and
  /// other users may write there, sets that mode. If the lock's path is a link or not a regular
  /// file, it is moved aside. Errors: kFailedPrecondition when another process holds the lock, with
  /// its pid; when the directory belongs to another user, or is writable for all users as /tmp is.
  /// A directory that cannot be written is not an error: nothing in it can be damaged then.
  static StatusOr<StateLock> Take(const std::string& directory);

  StateLock(StateLock&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  StateLock& operator=(StateLock&&) = delete;
  StateLock(const StateLock&) = delete;
  StateLock& operator=(const StateLock&) = delete;
  ~StateLock();

 private:
  explicit StateLock(int fd) : fd_(fd) {}

  int fd_;
};

}  // namespace qrm::manager
