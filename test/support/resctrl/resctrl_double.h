// A machine with resctrl for tests and benchmarks: the two file systems that a manager of it sees.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <linux/magic.h>

#include "api/base/check.h"
#include "api/base/status.h"
#include "plugins/rdt/resctrl.h"
#include "test/support/resctrl/fuse_mount.h"
#include "test/support/resctrl/resctrl_model.h"
#include "test/support/temp_dir.h"

namespace qrm::test {

/// /proc as far as resctrl reaches: THREAD/cpu_resctrl_groups of threads that live, and `mounts`.
class ThreadFiles final : public FileTree {
 public:
  ThreadFiles(ThreadGroups& threads, std::string mounts)
      : threads_(threads), mounts_(std::move(mounts)) {}

  Kind Find(const std::string& path) override;
  std::vector<std::string> List(const std::string& directory) override;
  FileResult Read(const std::string& path) override;
  int Write(const std::string& path, std::string_view text) override;
  int MakeDirectory(const std::string& path) override;
  int RemoveDirectory(const std::string& path) override;

 private:
  ThreadGroups& threads_;
  std::string mounts_;
};

/// A real file system that keeps what resctrl keeps (see ResctrlModel) over the real threads of
/// this machine, and the other file in which a thread shows its group. What it does not have is the
/// effect: no cache and no bandwidth is divided.
///
/// Threads: any.
class ResctrlDouble {
 public:
  /// Errors: kFailedPrecondition where the machine has no FUSE, or this is not root.
  static StatusOr<std::unique_ptr<ResctrlDouble>> Create(ResctrlMachine machine = {});

  /// What a manager is given instead of /sys/fs/resctrl and /proc.
  rdt::ResctrlPaths paths() const {
    return {.mount = directory_ / "resctrl",
            .proc = directory_ / "proc",
            .filesystem_type = FUSE_SUPER_MAGIC};
  }
  ResctrlModel& model() { return model_; }

  /// As `umount /sys/fs/resctrl` does: all groups are gone.
  void Unmount();
  void Mount() {
    mount_ = *FuseMount::Create(model_, directory_ / "resctrl", Names::kAskedEachTime);
  }

 private:
  explicit ResctrlDouble(ResctrlMachine machine);

  TempDir directory_;
  ResctrlModel model_;
  ThreadFiles thread_files_;
  std::unique_ptr<FuseMount> proc_;
  std::unique_ptr<FuseMount> mount_;
};

}  // namespace qrm::test
