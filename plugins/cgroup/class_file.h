// The file that defines a type's classes, and when it has to be read again.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include <sys/types.h>

#include "api/base/section.h"
#include "api/base/status.h"

namespace qrm::cgroup {

/// Threads: one at a time.
class ClassFile {
 public:
  explicit ClassFile(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }

  /// What the file holds now. Errors: kInvalidArgument when none is set; those of Section::Load.
  StatusOr<config::Section> Load();
  /// Whether it is another file than the one that was taken over last.
  bool HasChanged() const;
  /// What was loaded last is in force.
  void TakeOver() { taken_ = loaded_; }

  /// OK when each class of `in_use` is among `names`, which the file defines.
  /// Errors: kFailedPrecondition naming the first that is not.
  Status CheckInUse(const std::set<std::string>& names, const std::set<std::string>& in_use) const;

 private:
  /// By which a file is known to have changed.
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
