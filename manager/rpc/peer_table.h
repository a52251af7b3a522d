// Which process stands behind each open connection.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include <sys/types.h>

#include "api/mutex.h"
#include "api/status.h"
#include "manager/rpc/unix_server.h"

namespace qrm::manager {

/// The connections that were handed to gRPC, by file descriptor. gRPC closes them without telling,
/// so an entry whose descriptor is no longer the same socket counts as gone.
/// Threads: any.
class PeerTable {
 public:
  PeerTable(std::size_t max_connections, std::size_t max_per_peer)
      : max_connections_(max_connections), max_per_peer_(max_per_peer) {}

  /// Remembers that `fd` is connected to `peer`. Errors: kResourceExhausted when there are too many
  /// connections, of all or of this peer. Cost: a system call per connection when near the limit,
  /// else one.
  Status Add(int fd, const PeerCredentials& peer);

  std::optional<PeerCredentials> Find(int fd) const;

 private:
  struct Connection {
    PeerCredentials peer;
    ino_t inode = 0;  // sockets are numbered like files: tells a reused descriptor
  };

  void DropClosed() QRM_REQUIRES(mutex_);
  std::size_t CountOf(const PeerCredentials& peer) const QRM_REQUIRES(mutex_);
  void Forget(int fd) QRM_REQUIRES(mutex_);

  const std::size_t max_connections_;
  const std::size_t max_per_peer_;
  mutable Mutex mutex_;
  std::map<int, Connection> connections_ QRM_GUARDED_BY(mutex_);
  std::map<PeerCredentials, std::size_t> count_by_peer_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
