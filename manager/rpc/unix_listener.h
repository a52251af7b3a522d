// A listening unix socket that appears under its name when it is ready, and goes with its owner.
#pragma once

#include <string>

#include "api/base/status.h"
#include "manager/rpc/unix_server.h"

namespace qrm::manager {

/// Threads: Open and the destructor from one thread; Accept from another one.
class UnixListener {
 public:
  UnixListener() = default;
  /// Closes and removes the socket if the file is still ours.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  /// Errors: as UnixServer::Start.
  Status Open(const std::string& path, const UnixServerOptions& options);

  /// The next connection, as a descriptor that the caller closes; -1 once Shutdown was called.
  /// Waits out a process that has run out of descriptors.
  int Accept() const;

  /// Ends Accept.
  void Shutdown() const;

 private:
  Status MakeDirectory(const UnixServerOptions& options) const;
  Status BindAndListen(const std::string& temporary, const UnixServerOptions& options);

  std::string path_;
  int fd_ = -1;
  bool placed_ = false;
  unsigned long inode_ = 0;
};

/// Who is connected to `fd`. Source: unix(7), SO_PEERCRED.
StatusOr<PeerCredentials> PeerOf(int fd);

}  // namespace qrm::manager
