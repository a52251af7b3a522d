// Notices that the configuration file has changed.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <tuple>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

namespace qrm::manager {

/// Compares looks at a file: what it is, not what it says. A symbolic link is followed, so that a
/// ConfigMap's new version is another file.
///
/// Threads: one at a time.
class ChangedFile {
 public:
  /// What is at `path` now is known.
  explicit ChangedFile(std::string path) : path_(std::move(path)) { Know(); }

  /// What is there now is known, too.
  void Know() { known_ = last_ = Look(); }

  /// True once when another version is there, and was at the former call already: who wrote it has
  /// finished. A file that is missing is no version.
  bool HasSettled();

 private:
  /// Device, inode, size, and nanoseconds of its change.
  using Version = std::tuple<uint64_t, uint64_t, int64_t, int64_t>;
  std::optional<Version> Look() const;

  const std::string path_;
  std::optional<Version> known_;
  std::optional<Version> last_;
};

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
