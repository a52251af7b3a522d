// Notices that the configuration file has changed.
#pragma once

#include <functional>
#include <string>

#include "api/base/hidden.h"
#include "api/base/io_context.h"

namespace qrm::manager {

/// Looks at a file every second: inotify knows of no change behind a symbolic link, and of none in
/// some file systems.
///
/// Threads: the I/O loop, or before it runs.
class FileWatch {
 public:
  /// Without a path, nothing is watched.
  FileWatch(boost::asio::io_context& io, const std::string& path, std::function<void()> on_change);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  void Start();
  void Stop();
  /// The present version was read for another reason.
  void Know();

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::manager
