// Whether memory follows containers to other NUMA nodes: the kernel moves pages, or does not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "manager/reconcile/plan.h"
#include "manager/runtime/live_containers.h"

namespace qrm::manager {

/// Bytes of anonymous memory by NUMA node, of the cgroup at the path that the runtime gave a
/// container; empty: nothing is looked at.
using MemorySource =
    std::function<StatusOr<std::map<int, uint64_t>>(const std::string& cgroups_path)>;

/// Containers that were given other NUMA nodes, until their memory is there.
///
/// Threads: the state loop. Cost: Look reads one small file for each of them.
/// Source: Linux Documentation/admin-guide/cgroup-v2.rst, cpuset.mems; cpusets.rst on v1,
/// memory_migrate.
class MovedMemory {
 public:
  static constexpr int kMostLooks = 20;

  /// `live` outlives it.
  MovedMemory(MemorySource read, const LiveContainers& live);

  /// The runtime took `update`.
  void Note(const PlannedUpdate& update);

  /// One sentence for each whose memory is still elsewhere, at the next kMostLooks looks: what the
  /// kernel has not moved by then, it does not move, and a run with nothing else to do is to rest.
  /// Where it has followed, the log says so. One that has gone is forgotten.
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
