// The status of qrmd: small values that the daemon fills, and that control and metrics show.
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

/// What this node publishes to the API server.
struct PublishStatus {
  bool enabled = false;
  uint64_t writes = 0;    ///< of objects about the node
  uint64_t failures = 0;  ///< writes and events that the API server did not accept
  uint64_t events = 0;
  std::string problem;  ///< why the API server may lack the latest state; empty: it has it
};

/// Why a pool has fewer CPUs than its containers request: its configured maximum, or the CPUs that
/// are available.
enum class PoolClip : uint8_t { kNothing, kMax, kRoom };

/// A pool of a built-in plugin.
struct PoolStatus {
  std::string resource;
  std::string pool;
  CpuSet configured;
  CpuSet cpus;  ///< differs from `configured` after an operator resized the pool
  /// CPUs that the containers of an elastic pool request; absent for other pools.
  std::optional<int> wished_cpus;
  PoolClip clipped = PoolClip::kNothing;

  bool changed() const { return cpus != configured; }
};

/// The exclusive, shared and idle CPUs of a NUMA node, and its free memory.
struct NumaStatus {
  int node = 0;
  int own_cpus = 0;          ///< exclusive CPUs
  int unowned_cpus = 0;      ///< all other CPUs
  int idle_cpus = 0;         ///< unowned CPUs that are in no pool
  int lent_cpus = 0;         ///< CPUs of pools that other pools use, too
  double headroom_cpus = 0;  ///< CPUs that batch work can count on
  uint64_t unbound_memory_bytes = 0;
};

/// The status of the whole daemon.
struct NodeStatus {
  std::string version;
  std::chrono::steady_clock::time_point started;
  std::vector<std::string> not_ready_reasons;  ///< one sentence each; empty: ready
  std::vector<std::string> degraded_reasons;   ///< things that work worse than they should
  std::vector<std::string> kubelet_conflicts;  ///< among the reasons: kubelet pins containers, too
  RuntimeStatus runtime;
  ReconcileStatus reconcile;
  PublishStatus publish;
  std::string topology_policy;
  std::string state_path;
  std::vector<std::string> warnings;    ///< repairs and workarounds since the start
  std::size_t unplaced_containers = 0;  ///< unpinned: they run although they were rejected
  /// Containers that have an allocation but run without something that they request.
  std::size_t incomplete_containers = 0;
  std::size_t pending_containers = 0;  ///< they run with less than they request now
  std::vector<PoolStatus> pools;
  std::vector<NumaStatus> numa_nodes;
  std::string disk_problem;  ///< why new containers are rejected; empty: the disk accepts changes

  bool ready() const { return not_ready_reasons.empty(); }
};

/// Returns the current status. Threads: any; never waits.
using NodeStatusSource = std::function<NodeStatus()>;

}  // namespace qrm::manager
