// The file that defines a type's classes; detects when it must be read again.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include <sys/types.h>

#include "api/base/section.h"
#include "api/base/status.h"

namespace qrm::cgroup {

/// The file, with its last loaded version. Threads: one at a time.
class ClassFile {
 public:
  explicit ClassFile(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  /// Reads the file. Errors: kInvalidArgument when no file is set; those of Section::Load.
  StatusOr<config::Section> Load();
  /// Whether the file differs from the version that was taken over last.
  bool HasChanged() const;
  /// The version loaded last is now in force.
  void TakeOver() { taken_ = loaded_; }

  /// OK if each class of `in_use` is in `names`, which the file defines. Errors:
  /// kFailedPrecondition with the first missing class.
  Status CheckInUse(const std::set<std::string>& names, const std::set<std::string>& in_use) const;

 private:
  /// Identifies a version of the file.
  struct Mark {
    ino_t inode = 0;
    off_t size = 0;
    int64_t changed_ns = 0;

    bool operator==(const Mark&) const = default;
  };
  Mark Look() const;

  std::string path_;
  Mark loaded_;
  Mark taken_;
};

}  // namespace qrm::cgroup
