// What qrmd says about itself: small values that the daemon fills and the edges print.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "manager/pods/runtime_mode.h"
#include "manager/reconcile/reconcile_status.h"

namespace qrm::manager {

/// What this node tells the API server.
struct PublishStatus {
  bool enabled = false;
  uint64_t writes = 0;    ///< of objects about the node
  uint64_t failures = 0;  ///< writes and events that were not taken
  uint64_t events = 0;
  std::string problem;  ///< why the API server may not know the latest; empty: it does
};

/// Why a pool has fewer CPUs than its containers ask for: the most that it may have, or the room
/// that there is.
enum class PoolClip : uint8_t { kNothing, kMax, kRoom };

/// A pool of a built-in plugin.
struct PoolStatus {
  std::string resource;
  std::string pool;
  CpuSet configured;
  CpuSet cpus;  ///< others than configured where somebody resized it
  /// CPUs that its containers ask for, of one that follows them; absent for others.
  std::optional<int> wished_cpus;
  PoolClip clipped = PoolClip::kNothing;

  bool changed() const { return cpus != configured; }
};

/// What containers have for themselves of a NUMA node, and what is left.
struct NumaStatus {
  int node = 0;
  int own_cpus = 0;
  int unowned_cpus = 0;
  int idle_cpus = 0;         ///< those of them that are in no pool either
  int lent_cpus = 0;         ///< those of pools that other pools use, too
  double headroom_cpus = 0;  ///< what batch work can count on
  uint64_t unbound_memory_bytes = 0;
};

/// The daemon as a whole.
struct NodeStatus {
  std::string version;
  std::chrono::steady_clock::time_point started;
  std::vector<std::string> not_ready_reasons;  ///< one sentence each; empty: ready
  std::vector<std::string> degraded_reasons;   ///< what works, but worse than it should
  std::vector<std::string> kubelet_conflicts;  ///< among the reasons: kubelet pins containers, too
  RuntimeStatus runtime;
  ReconcileStatus reconcile;
  PublishStatus publish;
  std::string topology_policy;
  std::string state_path;
  std::vector<std::string> warnings;    ///< what was repaired or worked around since start
  std::size_t unplaced_containers = 0;  ///< that run although they were refused a place
  /// That have a place, and run without something that they request.
  std::size_t incomplete_containers = 0;
  std::size_t pending_containers = 0;  ///< that run with less than they request now
  std::vector<PoolStatus> pools;
  std::vector<NumaStatus> numa_nodes;
  std::string disk_problem;  ///< why new containers are refused; empty: the disk takes changes

  bool ready() const { return not_ready_reasons.empty(); }
};

/// Returns the status as it is now. Threads: any; never waits.
using NodeStatusSource = std::function<NodeStatus()>;

}  // namespace qrm::manager
