// Checks whether the kernel moves a container's memory to its new NUMA nodes.
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
