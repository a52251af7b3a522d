// A container's cgroups: the CPUs and memory nodes that it may use, read and written beside the
// runtime, and where its memory is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"

namespace qrm::manager {

/// The CPUs and memory nodes of one cgroup.
struct CgroupCpuset {
  CpuSet cpus;
  NumaMask mems;
  std::string path;  ///< the directory they were read from

  bool operator==(const CgroupCpuset&) const = default;
};

/// Reads the cpuset of the cgroup at the path that the runtime reported for a container; empty:
/// cpusets are not read.
using CpusetSource = std::function<StatusOr<CgroupCpuset>(const std::string& cgroups_path)>;

/// Those of `properties` that the kernel has with another value, each with the kernel's; empty:
/// they are not read.
using LimitSource =
    std::function<StringMap(const std::string& cgroups_path, const StringMap& properties)>;

/// Reads cpusets, and memory by NUMA node, from cgroup v1, v2 or a hybrid of them.
///
/// Threads: any. Cost: three or four small files.
/// Source: cgroups(7), cpuset(7); Linux Documentation/admin-guide/cgroup-v2.rst, "Cpuset".
class CgroupReader {
 public:
  /// `cgroup_root` and `proc_root` are where the two file systems are mounted.
  explicit CgroupReader(std::string cgroup_root = "/sys/fs/cgroup",
                        std::string proc_root = "/proc");

  /// By the path that the runtime reported for the container: "/kubepods/pod1/c1", or systemd's
  /// "slice:prefix:name". Errors: kNotFound when the container is gone, kFailedPrecondition when
  /// the machine has no cpuset controller.
  [[nodiscard]] StatusOr<CgroupCpuset> ReadByPath(const std::string& cgroups_path) const;
  /// By one of its processes. Errors: as above.
  [[nodiscard]] StatusOr<CgroupCpuset> ReadByPid(uint32_t pid) const;
  /// As a LimitSource, for CpuPeriod, CpuQuota, MemoryLimitInBytes, and with cgroup v1 CpuShares
  /// and MemorySwapLimitInBytes: runtimes translate these two to cgroup v2 in different ways. What
  /// cannot be read does not differ.
  /// Source: sched-bwc.rst, memory.rst; admin-guide/cgroup-v2.rst, "cpu.max" and "memory.max".
  [[nodiscard]] StringMap LimitsThatDiffer(const std::string& cgroups_path,
                                           const StringMap& properties) const;
  /// Bytes of anonymous memory by NUMA node, by path; with v1 without the groups below it. Errors:
  /// as above, and kDataLoss for a file of unknown form.
  /// Source: the same document, memory.numa_stat; cgroup-v1/memory.rst, 5.6.
  [[nodiscard]] StatusOr<std::map<int, uint64_t>> ReadMemory(const std::string& cgroups_path) const;

 private:
  [[nodiscard]] StatusOr<CgroupCpuset> ReadDirectory(const std::string& directory) const;

  std::string cgroup_root_;
  std::string proc_root_;
};

/// Writes `cpus` to the cgroup that `at` was read from. Succeeds if the cgroup is gone. Cost: some
/// 0.05 ms in the kernel. Errors: kPermissionDenied where cgroups cannot be written,
/// kFailedPrecondition for CPUs that the kernel rejects.
/// Source: cpuset(7); Linux Documentation/admin-guide/cgroup-v2.rst, "Cpuset".
Status WriteCpus(const CgroupCpuset& at, const CpuSet& cpus);

}  // namespace qrm::manager
