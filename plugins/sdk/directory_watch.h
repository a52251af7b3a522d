// Notices when certain names appear in a directory or disappear.
#pragma once

#include <string>
#include <vector>

namespace qrm::sdk {

/// Watches some names of one directory, which need not exist yet.
///
/// Threads: one at a time. Source: inotify(7).
class DirectoryWatch {
 public:
  DirectoryWatch(std::string directory, std::vector<std::string> names);
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

  /// Watches the directory that has the path now; costs nothing if that is done already. Without a
  /// directory, or when the user has no watches left, no event follows.
  void Arm();

  /// Readable when something happened; -1 without inotify, which poll(2) ignores.
  int fd() const { return fd_; }

  /// Reads the events since the last call; true if one concerned one of the names or the directory
  /// itself.
  bool Drain();

 private:
  std::string directory_;
  std::vector<std::string> names_;
  int fd_;
};

}  // namespace qrm::sdk
