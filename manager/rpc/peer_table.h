// Knows which process is at the other end of each open connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>

#include <sys/types.h>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "manager/rpc/rate_limiter.h"
#include "manager/rpc/unix_server.h"

namespace qrm::manager {

/// The connections that were handed to gRPC, by file descriptor. gRPC does not report when it
/// closes them, so an entry counts as gone when its descriptor is no longer the same socket. Such
/// entries are removed when room is short, within kSweepInterval. Threads: any.
class PeerTable {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::milliseconds kSweepInterval{20};

  explicit PeerTable(const ConnectionLimits& limits);

  /// Remembers that `fd` is connected to `peer`. Errors: kResourceExhausted for too many
  /// connections in total, of this peer or of its user, or too many new connections. Cost: one
  /// system call; when room is short, one for each connection every kSweepInterval.
  Status Add(int fd, const PeerCredentials& peer, Time now);

  std::optional<PeerCredentials> Find(int fd) const;

  /// Shuts the connection down; readers of `fd` see its end.
  void Disconnect(int fd) const;

 private:
  struct Connection {
    PeerCredentials peer;
    ino_t inode = 0;  // each socket has its own, so that a reused descriptor is noticed
  };
  template <typename Key>
  using CountBy = std::map<Key, std::size_t>;

  Status CheckRate(const PeerCredentials& peer, Time now);
  Status CheckRoom(const PeerCredentials& peer) const QRM_REQUIRES(mutex_);
  void DropClosed(Time now) QRM_REQUIRES(mutex_);
  void Forget(int fd) QRM_REQUIRES(mutex_);

  const ConnectionLimits limits_;
  std::optional<RateLimiter<PeerCredentials>> process_rate_;
  std::optional<RateLimiter<uid_t>> user_rate_;
  mutable Mutex mutex_;
  std::map<int, Connection> connections_ QRM_GUARDED_BY(mutex_);
  CountBy<PeerCredentials> count_by_process_ QRM_GUARDED_BY(mutex_);
  CountBy<uid_t> count_by_user_ QRM_GUARDED_BY(mutex_);
  Time swept_at_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
