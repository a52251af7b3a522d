// Compares the kernel's values of containers with those that the runtime accepted, and moves
// the memory of containers whose nodes changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/reconcile/foreign_writes.h"
#include "manager/runtime/cgroup_cpusets.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {

struct PlannedUpdate;

/// Where `actual` differs from `applied`: CpusetCpus and CpusetMems, each with the kernel's value.
/// A property that is not in `applied`, or whose value is not a list, does not count. `offline`
/// CPUs do not count either: the kernel removes them from the cpusets of cgroup v1.
StringMap DriftOf(const StringMap& applied, const CgroupCpuset& actual, const CpuSet& offline = {});

/// Whether the kernel's `actual` CPUs are those of `record`. A container without exclusive CPUs may
/// lack some, which others own. `offline` CPUs do not count.
bool HasItsCpus(const checkpoint::ContainerRecord& record, const CpuSet& actual,
                const CpuSet& offline = {});

/// Finds containers whose cpuset or limits another process changed. Each run checks the next few
/// containers, so that its cost does not grow with the node.
///
/// Threads: the state loop. Cost: Find reads two small files for each of `per_run` containers, and
/// one more for each limit that a plugin set.
class DriftCheck {
 public:
  struct Parts {
    CpusetSource read;
    const LiveContainers& live;
    ForeignWrites& writes;
    LimitSource read_limits;
  };
  /// The parts outlive the check.
  explicit DriftCheck(Parts parts, std::size_t per_run = 64);

  /// Checks the next `per_run` containers. The change removes drifted values from the applied
  /// values in `state`, so that the next updates apply them again. A container that cannot be read
  /// is skipped. CPUs are not drift if they are the due CPUs, or if the container's update is
  /// deferred. In the first round over all containers, missing CPUs do not count as written by
  /// another process: an earlier qrmd may have given them to an owner.
  checkpoint::Change Find(const checkpoint::NodeState& state, const CpuSet& offline = {});

  /// One sentence if the kernel has other values than `properties`, which the container of `key`
  /// just got. Empty when it has them, or cannot be read.
  std::string ReadBack(const ContainerKey& key, const StringMap& properties,
                       const CpuSet& offline = {}) const;

  const Parts& parts() const { return parts_; }

 private:
  StringMap DriftOfAll(const std::string& cgroups_path, const StringMap& applied,
                       const CgroupCpuset& actual, const CpuSet& offline) const;
  StringMap DriftOfOne(const ContainerKey& key, const LiveContainer& container,
                       const checkpoint::NodeState& state, const CpuSet& owned,
                       const CpuSet& offline) const;
  bool IsForeign(const std::string& property, const std::string& theirs,
                 const std::string& ours) const;

  const Parts parts_;
  const std::size_t per_run_;
  ContainerKey last_;  ///< the container checked last; the next run begins after it
  bool is_first_round_ = true;
};

/// Reads the bytes of anonymous memory by NUMA node of the cgroup at a container's path; empty:
/// nothing is checked.
using MemorySource =
    std::function<StatusOr<std::map<int, uint64_t>>(const std::string& cgroups_path)>;

/// Containers that got other NUMA nodes, until their memory has moved there.
///
/// Threads: the state loop. Cost: Look reads one small file for each such container.
/// Source: Linux Documentation/admin-guide/cgroup-v2.rst, cpuset.mems; cpusets.rst on v1,
/// memory_migrate.
class MovedMemory {
 public:
  static constexpr int kMostLooks = 20;

  /// `live` outlives the object.
  MovedMemory(MemorySource read, const LiveContainers& live);

  /// The runtime accepted `update`.
  void Note(const PlannedUpdate& update);

  /// One sentence for each container with memory on other nodes. After kMostLooks looks the
  /// container is forgotten: the kernel will not move that memory, and an idle node needs no more
  /// reads. When all memory has moved, the log says so. A removed container is forgotten.
  std::vector<std::string> Look();

 private:
  struct Moved {
    std::string id;
    NumaMask nodes;
    int looks = 0;
  };

  const MemorySource read_;
  const LiveContainers& live_;
  std::map<ContainerKey, Moved> moved_;
};

}  // namespace qrm::manager
