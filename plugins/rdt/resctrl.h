// The kernel's resctrl file system: its groups, their schemata, and which group a thread is in.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "api/base/status.h"
#include "plugins/rdt/info.h"

namespace qrm::rdt {

/// Where the file systems are, and how to recognise resctrl.
struct ResctrlPaths {
  std::string mount = "/sys/fs/resctrl";
  std::string proc = "/proc";
  int64_t filesystem_type = 0x7655821;  ///< as statfs(2) has it: RDTGROUP_SUPER_MAGIC
};

/// Holds the lock by which the managers of resctrl keep out of each other's way.
class ResctrlLock {
 public:
  explicit ResctrlLock(int file) : file_(file) {}
  ResctrlLock(ResctrlLock&& other) noexcept;
  ResctrlLock(const ResctrlLock&) = delete;
  ResctrlLock& operator=(const ResctrlLock&) = delete;
  ResctrlLock& operator=(ResctrlLock&&) = delete;
  ~ResctrlLock();

 private:
  int file_;
};

/// Reads and changes resctrl, one command a call. Groups are control groups by their directory's
/// name; the root group is "".
///
/// Threads: any, one changer at a time.
/// Errors: with the kernel's own words for the last command where it has some; kFailedPrecondition
/// when resctrl is not mounted, kResourceExhausted where ids have run out, kUnavailable where the
/// kernel is busy and for a group that is gone.
/// Source: Linux Documentation/filesystems/resctrl.rst.
class Resctrl {
 public:
  explicit Resctrl(ResctrlPaths paths);

  /// What is there to divide. Cost: about twenty small files.
  [[nodiscard]] StatusOr<RdtInfo> ReadInfo() const;

  /// What it is mounted with of what changes its meaning, such as "cdp,mba_MBps".
  [[nodiscard]] std::string MountOptions() const;
  [[nodiscard]] Status Mount(const std::string& options) const;

  /// Errors: kUnavailable when another process has held the lock for a second.
  [[nodiscard]] StatusOr<ResctrlLock> Lock() const;

  /// All but the root group, whoever made them.
  [[nodiscard]] StatusOr<std::set<std::string>> Groups() const;
  [[nodiscard]] Status Make(const std::string& group) const;
  /// Its threads go to the root group.
  [[nodiscard]] Status Remove(const std::string& group) const;

  [[nodiscard]] StatusOr<std::string> ReadSchemata(const std::string& group) const;
  /// `lines` end in a newline each; all are applied or none.
  [[nodiscard]] Status WriteSchemata(const std::string& group, std::string_view lines) const;

  /// As the group's own list has it.
  [[nodiscard]] StatusOr<std::set<pid_t>> Threads(const std::string& group) const;
  /// Moves them one after another; those that are gone do not count.
  [[nodiscard]] Status Move(const std::vector<pid_t>& threads, const std::string& group) const;
  /// As the thread's own file has it; nothing when the thread is gone. Cost: one small file.
  [[nodiscard]] StatusOr<std::optional<std::string>> GroupOf(pid_t thread) const;

  /// Event -> its count over all L3 caches; what cannot be counted now is left out.
  [[nodiscard]] std::map<std::string, uint64_t> Counters(const std::string& group,
                                                         const RdtInfo& info) const;

 private:
  [[nodiscard]] Status CheckMounted() const;
  [[nodiscard]] std::string PathOf(const std::string& group, std::string_view file) const;
  [[nodiscard]] Status Failed(int error, std::string_view what) const;

  ResctrlPaths paths_;
};

}  // namespace qrm::rdt
