// Notices that the configuration file has changed.
#pragma once

#include <functional>
#include <string>

#include "api/base/hidden.h"
#include "api/base/io_context.h"

namespace qrm::manager {

/// Checks a file every second. inotify does not report changes behind a symbolic link, which is how
/// kubelet updates ConfigMaps, nor changes in some file systems.
///
/// Threads: the I/O loop, or before it runs.
class FileWatch {
 public:
  /// With an empty `path`, nothing is watched.
  FileWatch(boost::asio::io_context& io, const std::string& path, std::function<void()> on_change);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  void Start();
  void Stop();
  /// The current version was just read for another reason, and is not reported as a change.
  void Know();

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::manager
