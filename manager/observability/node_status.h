// The status of qrmd: small values that the daemon fills, and that control and metrics show.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/id_set.h"
#include "manager/pods/runtime_mode.h"
#include "manager/reconcile/reconcile_status.h"

namespace qrm::manager {

/// The parts of a node that qrmd depends on, in the order of `qrmctl status`.
enum class Subsystem : uint8_t {
  kQrmd,
  kRuntime,
  kNri,
  kKubelet,
  kPlugins,
  kDrivers,
  kClasses,
  kState,
  kDisk,
  kApiServer,
  kCluster
};
inline constexpr std::size_t kSubsystemCount = 11;

/// kFailing: new containers are rejected because of it.
enum class Health : uint8_t { kOk, kDegraded, kFailing };

/// One subsystem at a glance.
struct SubsystemStatus {
  Subsystem subsystem = Subsystem::kQrmd;
  Health health = Health::kOk;
  std::string about;  ///< facts, not sentences
  std::string next;   ///< the next command to type; empty while the subsystem is healthy
  std::chrono::steady_clock::time_point since;  ///< when it became so
};

/// How qrmd learns what pods request.
struct RequestsStatus {
  std::string source;     ///< kubelet's API; empty: requests are estimated from cgroup values
  bool accepted = false;  ///< no kubelet is on this node, or the configuration names no API
  bool uses_url = false;  ///< kubelet-url is set

  bool estimated() const { return source.empty(); }
  /// What estimates lose, and the cure; empty unless they are a surprise.
  std::string problem() const;
};

/// What this node publishes to the API server.
struct PublishStatus {
  bool enabled = false;
  uint64_t writes = 0;    ///< of objects about the node
  uint64_t failures = 0;  ///< writes and events that the API server did not accept
  uint64_t events = 0;
  std::string problem;  ///< why the API server may lack the latest state; empty: it has it
  bool reached = true;  ///< false: the problem is the API server itself, not one object
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
  RequestsStatus requests;
  /// By plugin, and "kubelet": how old its answer to the pod-resources API is while it fails; 0
  /// while it answers. Units: seconds.
  std::map<std::string, double> answer_ages;
  std::array<Health, kSubsystemCount> health{};  ///< by Subsystem
  std::vector<SubsystemStatus> subsystems;

  /// Adds a reason why the node is not ready.
  void Fail(Subsystem subsystem, std::string reason) {
    Worsen(subsystem, Health::kFailing);
    not_ready_reasons.push_back(std::move(reason));
  }
  /// Adds a reason why the node is degraded.
  void Degrade(Subsystem subsystem, std::string reason) {
    Worsen(subsystem, Health::kDegraded);
    degraded_reasons.push_back(std::move(reason));
  }
  void Worsen(Subsystem subsystem, Health to) {
    Health& known = health.at(static_cast<std::size_t>(subsystem));
    known = known < to ? to : known;
  }
  bool ready() const { return not_ready_reasons.empty(); }
};

}  // namespace qrm::manager
