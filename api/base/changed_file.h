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
  /// The version at `path` now is known.
  explicit ChangedFile(std::string path) : path_(std::move(path)) { Know(); }

  /// The current version is known, too.
  void Know() { known_ = last_ = Look(); }

  /// True once for another version that the former call saw already: its writer has finished. A
  /// missing file is not a version.
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
