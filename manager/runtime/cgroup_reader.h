// Reads back a container's cpuset cgroup: what the kernel says it may use.
#pragma once

#include <cstdint>
#include <string>

#include "api/base/status.h"
#include "api/id_set.h"

namespace qrm::manager {

/// The CPUs and memory nodes of one cgroup.
struct CgroupCpuset {
  CpuSet cpus;
  NumaMask mems;
  std::string path;  ///< the directory they were read from

  bool operator==(const CgroupCpuset&) const = default;
};

/// Reads cpusets from cgroup v1, v2 or a hybrid of them.
///
/// Threads: any. Cost: three or four small files.
/// Source: cgroups(7), cpuset(7); Linux Documentation/admin-guide/cgroup-v2.rst, "Cpuset".
class CgroupReader {
 public:
  /// `cgroup_root` and `proc_root` are where the two file systems are mounted.
  explicit CgroupReader(std::string cgroup_root = "/sys/fs/cgroup",
                        std::string proc_root = "/proc");

  /// By the path that the runtime gave the container: "/kubepods/pod1/c1", or systemd's
  /// "slice:prefix:name". Errors: kNotFound when the container is gone, kFailedPrecondition when
  /// the machine has no cpuset controller.
  [[nodiscard]] StatusOr<CgroupCpuset> ReadByPath(const std::string& cgroups_path) const;
  /// By a process in it. Errors: as above.
  [[nodiscard]] StatusOr<CgroupCpuset> ReadByPid(uint32_t pid) const;

 private:
  [[nodiscard]] StatusOr<CgroupCpuset> ReadDirectory(const std::string& directory) const;

  std::string cgroup_root_;
  std::string proc_root_;
};

}  // namespace qrm::manager
