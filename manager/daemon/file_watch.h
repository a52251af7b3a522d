// Notices that the configuration file has changed.
#pragma once

#include <functional>
#include <string>

#include <boost/asio/steady_timer.hpp>

#include "api/base/changed_file.h"
#include "api/base/io_context.h"

namespace qrm::manager {

/// Looks at a file every second: inotify knows of no change behind a symbolic link, and of none in
/// some file systems.
///
/// Threads: the I/O loop, or before it runs.
class FileWatch {
 public:
  /// Without a path, nothing is watched.
  FileWatch(boost::asio::io_context& io, std::string path, std::function<void()> on_change);

  void Start();
  void Stop() { timer_.cancel(); }
  /// The present version was read for another reason.
  void Know() { file_.Know(); }

 private:
  const std::string path_;
  const std::function<void()> on_change_;
  ChangedFile file_;
  boost::asio::steady_timer timer_;
};

}  // namespace qrm::manager
