// Mounts a tree of files as a file system for real system calls.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "test/support/resctrl/resctrl_model.h"

namespace qrm::test {

/// Whether the kernel may cache names; a file's content is always asked for.
enum class Names { kAskedEachTime, kRemembered };

/// `tree`, mounted as long as this lives. A file that is created again at the same path is another
/// file: processes with the former file open get ENODEV. Needs root and /dev/fuse.
class FuseMount {
 public:
  /// Mounts it on the directory `point`. Errors: kFailedPrecondition where the machine has no FUSE.
  /// `tree` outlives the mount.
  static StatusOr<std::unique_ptr<FuseMount>> Create(FileTree& tree, const std::string& point,
                                                     Names names);
  ~FuseMount();
  FuseMount(const FuseMount&) = delete;
  FuseMount& operator=(const FuseMount&) = delete;

 private:
  struct Impl;
  explicit FuseMount(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::test
