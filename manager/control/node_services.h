// What the edges (control, metrics, health) ask of the daemon, so that none of them knows its
// parts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace qrm::manager {

/// The runtime's side of the node as it is now.
struct RuntimeStatus {
  std::string name;  ///< "containerd"; empty until the runtime has told
  std::string version;
  bool nri_connected = false;
  uint64_t nri_connects = 0;
  uint64_t nri_disconnects = 0;
  /// When the runtime's pods and containers were last compared with ours; absent: not yet.
  std::optional<std::chrono::steady_clock::time_point> synchronized_at;
  bool cri_reachable = false;
  std::string problem;  ///< one sentence; empty when all is well

  bool operator==(const RuntimeStatus&) const = default;
};

/// What the reconcile loop has done since start.
struct ReconcileStatus {
  std::chrono::milliseconds period{0};
  std::optional<std::chrono::steady_clock::time_point> last_run_at;  ///< absent: not yet
  uint64_t runs = 0;
  uint64_t updates = 0;  ///< UpdateContainerResources calls that succeeded
  uint64_t failures = 0;
  std::string last_problem;  ///< one sentence; empty when the last run went well

  bool operator==(const ReconcileStatus&) const = default;
};

/// The daemon in one value.
struct NodeStatus {
  /// The state is restored: what the snapshots say is all that was promised.
  bool restored = false;
  bool ready = false;                          ///< containers can be admitted
  std::vector<std::string> not_ready_reasons;  ///< one sentence each; empty when ready
  std::chrono::steady_clock::time_point started_at;
  RuntimeStatus runtime;
  ReconcileStatus reconcile;
  std::string topology_policy;
  std::string state_path;
  /// What was repaired or worked around since start, one sentence each.
  std::vector<std::string> warnings;

  bool operator==(const NodeStatus&) const = default;
};

/// The daemon as the edges see it. Threads: any.
class NodeServices {
 public:
  virtual ~NodeServices() = default;

  /// Never waits for an admission.
  virtual NodeStatus Status() const = 0;

  /// Starts a reconcile as soon as none is running; returns at once. `resource` is the plugin that
  /// asked, or empty.
  virtual void ReconcileSoon(const std::string& resource) = 0;

  /// Runs `work` on the state loop, which may wait for plugins.
  virtual void Post(std::function<void()> work) = 0;
};

}  // namespace qrm::manager
