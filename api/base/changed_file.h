// Detects that a file was replaced or changed.
#pragma once

#include <string>
#include <utility>

#include <sys/stat.h>

namespace qrm {

inline constexpr char kNoFile[] = "none";

/// Differs when the file does; kNoFile without a file. A symbolic link is followed, so that a new
/// version of a ConfigMap or secret is another file. Cost: a call of stat(2).
inline std::string FileVersion(const std::string& file) {
  struct stat now{};
  if (::stat(file.c_str(), &now) != 0) {
    return kNoFile;
  }
  return std::to_string(now.st_dev) + ":" + std::to_string(now.st_ino) + ":" +
         std::to_string(now.st_size) + ":" + std::to_string(now.st_mtim.tv_sec) + "." +
         std::to_string(now.st_mtim.tv_nsec);
}

/// Compares looks at a file. Threads: one at a time.
class ChangedFile {
 public:
  /// The version at `path` now is known.
  explicit ChangedFile(std::string path) : path_(std::move(path)) { Know(); }

  /// The current version is known, too.
  void Know() { known_ = last_ = FileVersion(path_); }

  /// True once for another version that the former call saw already: its writer has finished. A
  /// missing file is not a version.
  bool HasSettled() {
    const std::string now = FileVersion(path_);
    const bool settled = now != kNoFile && now == std::exchange(last_, now) && now != known_;
    if (settled) {
      known_ = now;
    }
    return settled;
  }

 private:
  const std::string path_;
  std::string known_;
  std::string last_;
};

}  // namespace qrm
