// Registers the plugins whose sockets appear in the watched directory.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "api/base/io_context.h"
#include "api/base/status.h"
#include "manager/registry/endpoint_set.h"

namespace qrm::manager {

struct SocketWatcherOptions {
  std::string directory;
  std::chrono::milliseconds rescan_period{2000};
  std::chrono::milliseconds info_deadline{1000};
  std::chrono::milliseconds notify_deadline{5000};
  /// The waits between failed registrations of one socket double from the first to the last value.
  std::chrono::milliseconds backoff_first{500};
  std::chrono::milliseconds backoff_last{30000};
};

/// Asks the plugin behind each new socket for its identity, registers resource plugins and compute
/// drivers, and sends them the outcome. Sockets of other kinds of plugins are ignored. When a
/// socket is removed or replaced, its plugin counts as not running. The new socket is registered
/// at once, whatever failed before.
///
/// Threads: Start and the destructor on the I/O loop, or while it does not run.
/// Source: pluginregistration; kubelet's plugin watcher, without its lost events and sticky
/// backoff.
class SocketWatcher {
 public:
  /// `io` and `endpoints` outlive the watcher.
  SocketWatcher(boost::asio::io_context& io, EndpointSet& endpoints, SocketWatcherOptions options);
  ~SocketWatcher();
  SocketWatcher(const SocketWatcher&) = delete;
  SocketWatcher& operator=(const SocketWatcher&) = delete;

  /// Errors: kFailedPrecondition when the directory cannot be created.
  Status Start();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
