// The kernel's resctrl file system: its groups, their schemata, and the group of each thread.
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

namespace qrm::rdt {

/// A cache that can be divided.
struct CacheInfo {
  uint64_t mask = 0;  ///< all its ways
  int least_bits = 1;
  std::vector<int> ids;  ///< ascending; neither contiguous nor starting at 0
  /// Mounted with cdp or cdpl2: code and data have separate masks.
  bool code_and_data = false;
};

/// Memory bandwidth that can be divided.
struct BandwidthInfo {
  uint64_t least_percent = 0;
  uint64_t granularity = 1;  ///< the kernel rounds percentages up to it
  std::vector<int> ids;
  bool in_mbps = false;  ///< mounted with mba_MBps
};

struct RdtInfo {
  std::optional<CacheInfo> l2;
  std::optional<CacheInfo> l3;
  std::optional<BandwidthInfo> mb;
  std::size_t groups = 0;           ///< the maximum number of control groups, with the root group
  std::vector<std::string> events;  ///< counters of each L3: "llc_occupancy", ...
};

/// The paths of the file systems, and how to recognise resctrl.
struct ResctrlPaths {
  std::string mount = "/sys/fs/resctrl";
  std::string proc = "/proc";
  int64_t filesystem_type = 0x7655821;  ///< from statfs(2): RDTGROUP_SUPER_MAGIC
};

/// Holds the lock that resctrl's managers use to exclude each other.
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

/// Reads and changes resctrl, one command per call. A group is a control group, by its directory's
/// name; the root group is "".
///
/// Threads: any, but only one may change resctrl at a time. Errors, with the kernel's status text
/// if there is one: kFailedPrecondition when resctrl is not mounted, kResourceExhausted when no ids
/// are left, kUnavailable when the kernel is busy or the group is gone. Source: Linux
/// Documentation/filesystems/resctrl.rst.
class Resctrl {
 public:
  explicit Resctrl(ResctrlPaths paths);

  /// The resources that can be divided. Cost: about twenty small files.
  [[nodiscard]] StatusOr<RdtInfo> ReadInfo() const;

  /// The mount options that change resctrl's meaning, such as "cdp,mba_MBps".
  [[nodiscard]] std::string MountOptions() const;
  [[nodiscard]] Status Mount(const std::string& options) const;

  /// Errors: kUnavailable when another process has held the lock for a second.
  [[nodiscard]] StatusOr<ResctrlLock> Lock() const;

  /// All groups except the root group, from any creator.
  [[nodiscard]] StatusOr<std::set<std::string>> Groups() const;
  [[nodiscard]] Status Make(const std::string& group) const;
  /// Its threads go to the root group.
  [[nodiscard]] Status Remove(const std::string& group) const;

  [[nodiscard]] StatusOr<std::string> ReadSchemata(const std::string& group) const;
  /// Each line ends in a newline; all lines are applied, or none.
  [[nodiscard]] Status WriteSchemata(const std::string& group, std::string_view lines) const;

  /// Reads the group's list.
  [[nodiscard]] StatusOr<std::set<pid_t>> Threads(const std::string& group) const;
  /// Moves the threads one after another; ended threads are ignored.
  [[nodiscard]] Status Move(const std::vector<pid_t>& threads, const std::string& group) const;
  /// Reads the thread's file; nothing if the thread has ended. Cost: one small file.
  [[nodiscard]] StatusOr<std::optional<std::string>> GroupOf(pid_t thread) const;

  /// Event -> its sum over all L3 caches; unavailable counters are left out.
  [[nodiscard]] std::map<std::string, uint64_t> Counters(const std::string& group,
                                                         const RdtInfo& info) const;

 private:
  [[nodiscard]] Status CheckMounted() const;
  [[nodiscard]] StatusOr<std::string> Read(const std::string& group, std::string_view name,
                                           std::string_view action) const;
  [[nodiscard]] std::string PathOf(const std::string& group, std::string_view file) const;
  [[nodiscard]] Status Failed(int error, std::string_view what) const;

  ResctrlPaths paths_;
};

}  // namespace qrm::rdt
