// Lists the sockets below a directory, and reports when something there changes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "api/base/io_context.h"
#include "api/base/status.h"

namespace qrm::manager {

/// Which socket a path names: another one under the same name differs in inode or birth.
struct SocketIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t changed_ns = 0;  ///< time of the inode's last change: inode numbers are used again

  bool operator==(const SocketIdentity&) const = default;
};

using Sockets = std::map<std::string, SocketIdentity>;

/// Watches a tree of directories. Names that begin with a dot are passed over, and so are
/// directories in which other users than root could pose as a plugin, and their sockets; the log
/// says so.
///
/// Threads: on `io` only.
/// Source: inotify(7); kubelet's plugin watcher for what counts as a plugin's socket.
class DirectoryScan {
 public:
  /// `changed` runs on `io` when something happened; at the latest every `period`, for events that
  /// the kernel dropped. `io` outlives the scan.
  DirectoryScan(boost::asio::io_context& io, std::string directory,
                std::chrono::milliseconds period, std::function<void()> changed);
  ~DirectoryScan();
  DirectoryScan(const DirectoryScan&) = delete;
  DirectoryScan& operator=(const DirectoryScan&) = delete;

  /// Makes the directory (0750) when it is missing and begins to watch it. Errors:
  /// kFailedPrecondition when it cannot be made.
  Status Start();

  /// The sockets that are there now; directories that are new are watched from now on.
  Sockets Scan();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
