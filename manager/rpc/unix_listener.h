// A listening Unix socket whose file appears only when it is ready, and is removed with its owner.
#pragma once

#include <string>

#include "api/base/spare_handles.h"
#include "api/base/status.h"
#include "manager/rpc/unix_server.h"

namespace qrm::manager {

/// Threads: Open and the destructor from one thread; Accept from another one.
class UnixListener {
 public:
  UnixListener() = default;
  /// Closes the socket, and removes its file if it still belongs to this object.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  /// Errors: as UnixServer::Start.
  Status Open(const std::string& path, const UnixServerOptions& options);

  /// The next connection, as a descriptor that the caller closes; -1 after Shutdown. Waits while
  /// the process has no free descriptors, and the listener has given those back that it kept.
  int Accept();

  /// Ends Accept.
  void Shutdown() const;

 private:
  Status MakeDirectory(const UnixServerOptions& options) const;
  Status BindAndListen(const std::string& temporary, const UnixServerOptions& options);

  std::string path_;
  int fd_ = -1;
  bool placed_ = false;
  unsigned long inode_ = 0;
  SpareHandles spares_;  // used by Accept
};

/// The process that is connected to `fd`. Source: unix(7), SO_PEERCRED.
StatusOr<PeerCredentials> PeerOf(int fd);

}  // namespace qrm::manager
