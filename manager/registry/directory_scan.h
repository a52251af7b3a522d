// Lists the sockets below a directory, and reports changes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "api/base/io_context.h"
#include "api/base/status.h"

namespace qrm::manager {

/// Identifies a socket: another socket at the same path differs in inode or time.
struct SocketIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t changed_ns = 0;  ///< the inode's ctime: the kernel reuses inode numbers

  bool operator==(const SocketIdentity&) const = default;
};

using Sockets = std::map<std::string, SocketIdentity>;

/// Watches a tree of directories. Names that begin with a dot are skipped. Directories and sockets
/// with which other users could impersonate a plugin are skipped and logged.
///
/// Threads: on `io` only.
/// Source: inotify(7); kubelet's plugin watcher for the kinds of files that count as a socket.
class DirectoryScan {
 public:
  /// `changed` runs on `io` after each change, and at least every `period`, because the kernel can
  /// drop events. `io` outlives the scan.
  DirectoryScan(boost::asio::io_context& io, std::string directory,
                std::chrono::milliseconds period, std::function<void()> changed);
  ~DirectoryScan();
  DirectoryScan(const DirectoryScan&) = delete;
  DirectoryScan& operator=(const DirectoryScan&) = delete;

  /// Creates the directory (0750) if it is missing and begins to watch it. Errors:
  /// kFailedPrecondition if it cannot be created.
  Status Start();

  /// The current sockets; begins to watch new directories.
  Sockets Scan();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
