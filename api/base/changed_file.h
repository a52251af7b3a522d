// Notices that a file has changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace qrm {

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

}  // namespace qrm
