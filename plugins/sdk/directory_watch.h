// Tells when certain names appear in a directory or go from it.
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

  /// Watches the directory that has the path now; free when that is done already. Without a
  /// directory, or when the user has no watches left, nothing is told.
  void Arm();

  /// Readable when something happened; -1, which poll(2) passes over, without inotify.
  int fd() const { return fd_; }

  /// Takes what happened since the last call; true when it was about one of the names or about the
  /// directory as a whole.
  bool Drain();

 private:
  std::string directory_;
  std::vector<std::string> names_;
  int fd_;
};

}  // namespace qrm::sdk
