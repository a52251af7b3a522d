// Keeps two qrmd from using one state directory.
#pragma once

#include <string>

#include "api/base/status.h"

namespace qrm::manager {

/// Holds `<directory>/qrmd.lock` until it is destroyed or the process ends, however it ends.
/// Source: flock(2).
class StateLock {
 public:
  /// Makes `directory`, mode 0700, when it is missing, and closes one of qrmd's own user in which
  /// others may write. What stands in the lock's place and is no file of its own is moved aside.
  /// Errors: kFailedPrecondition when another process holds the lock, with its pid; when the
  /// directory is another user's, or one for all to write in, such as /tmp. A directory that cannot
  /// be written is no error: nothing in it can be damaged then.
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
