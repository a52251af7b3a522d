// Compares the kernel's cpusets with what the runtime took from us.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "manager/reconcile/foreign_writes.h"
#include "manager/runtime/cgroup_reader.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {

/// Where `actual` differs from `applied`: CpusetCpus and CpusetMems, each with the kernel's value.
/// A property that is not in `applied`, or has a value that is no list, does not count, and neither
/// do CPUs that are `offline`, which the kernel takes out of the cpusets of cgroup v1.
StringMap DriftOf(const StringMap& applied, const CgroupCpuset& actual, const CpuSet& offline = {});

/// Finds containers whose cpuset somebody else changed behind the runtime's back: a few in each
/// run, one after the other, so that a run's cost does not grow with the node.
///
/// Threads: the state loop. Cost: Find reads two small files for each of `per_run` containers.
class DriftCheck {
 public:
  struct Parts {
    CpusetSource read;
    const LiveContainers& live;
    ForeignWrites& writes;
  };
  /// The parts outlive the check.
  explicit DriftCheck(Parts parts, std::size_t per_run = 64);

  /// Checks the next `per_run` containers. The change removes values that drifted from what `state`
  /// says was applied, so that the next updates apply them again. A container that cannot be read
  /// is skipped, and CPUs are none's drift where they are those that it is to have, or the runtime
  /// has yet to be told of them. Until all were checked once, CPUs that are missing may be those
  /// that an earlier qrmd took for an owner: they are nobody's write.
  checkpoint::Change Find(const checkpoint::NodeState& state, const CpuSet& offline = {});

  /// What the kernel has in place of `properties`, which the container of `key` was just given: one
  /// sentence, or empty when it has them, or cannot be read.
  std::string ReadBack(const ContainerKey& key, const StringMap& properties,
                       const CpuSet& offline = {}) const;

  const Parts& parts() const { return parts_; }

 private:
  StringMap DriftOfOne(const ContainerKey& key, const LiveContainer& container,
                       const checkpoint::NodeState& state, const CpuSet& owned,
                       const CpuSet& offline) const;
  bool IsForeign(const std::string& property, const std::string& theirs,
                 const std::string& ours) const;

  const Parts parts_;
  const std::size_t per_run_;
  ContainerKey last_;  ///< the last one checked; the next run begins after it
  bool is_first_round_ = true;
};

}  // namespace qrm::manager
