// A machine with resctrl for tests and benchmarks: the two file systems that a manager of it sees.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <linux/magic.h>
#include <sys/types.h>

#include "api/base/status.h"
#include "plugins/rdt/resctrl.h"
#include "test/support/resctrl/resctrl_model.h"
#include "test/support/temp_dir.h"

namespace qrm::test {

/// A real file system with resctrl's rules (see ResctrlModel) for the real threads of this machine,
/// and the other file in which a thread shows its group. It has no effect: no cache and no
/// bandwidth is divided.
///
/// A separate process serves it, which ends with this object or with the test: a process that
/// serves a file system to itself cannot be killed while it waits for it.
///
/// Threads: any; Create while there are no others.
class ResctrlDouble {
 public:
  /// Called before each command that changes something, with its path: here others can come between
  /// two calls. It runs in the serving process, on the data from before its fork.
  using Before = std::function<void(ResctrlModel& model, const std::string& path)>;

  /// Errors: kFailedPrecondition where the machine has no FUSE, or this is not root.
  static StatusOr<std::unique_ptr<ResctrlDouble>> Create(const ResctrlMachine& machine = {},
                                                         const Before& before = {});
  ~ResctrlDouble();
  ResctrlDouble(const ResctrlDouble&) = delete;
  ResctrlDouble& operator=(const ResctrlDouble&) = delete;

  /// The manager's paths instead of /sys/fs/resctrl and /proc.
  rdt::ResctrlPaths paths() const { return PathsBelow(directory_.path()); }
  /// The same for another process, which knows `directory()` of the double.
  static rdt::ResctrlPaths PathsBelow(const std::string& directory) {
    return {.mount = directory + "/resctrl",
            .proc = directory + "/proc",
            .filesystem_type = FUSE_SUPER_MAGIC};
  }
  const std::string& directory() const { return directory_.path(); }

  /// See ThreadGroups::Watch.
  void Watch(const std::string& cgroup_directory) { Tell("watch", cgroup_directory); }
  /// What the counters of control group `group` show from now on, for each L3.
  void SetCounter(const std::string& group, const std::string& event, const std::string& text) {
    Tell("counter", group, event, text);
  }
  /// As `umount /sys/fs/resctrl` does: all groups are gone.
  void Unmount() { Tell("unmount"); }
  void Mount() { Tell("mount"); }

 private:
  ResctrlDouble() = default;
  void Tell(const std::string& command, const std::string& first = "",
            const std::string& second = "", const std::string& third = "") const;

  TempDir directory_;
  int channel_ = -1;
  pid_t server_ = -1;
};

}  // namespace qrm::test
