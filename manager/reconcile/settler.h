// Resyncs plugins with the checkpoint: the recorded allocations win.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "manager/admission/admission_options.h"
#include "manager/reconcile/plan.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"
#include "topology/machine.h"

namespace qrm::manager {

class Plugins;

/// Restores lost allocations of plugins, and releases their allocations for unknown containers. A
/// plugin gets one call at a time and at most kCallsPerRun in a run, and after a failed call no
/// more in that run. Nothing waits for the answers. Each call begins as a job of the state loop and
/// uses the records of that moment, so that an admission comes either before or after it.
///
/// Threads: the state loop only.
class Settler : public std::enable_shared_from_this<Settler> {
 public:
  static constexpr std::size_t kCallsPerRun = 100;
  /// Grants that one call restores.
  static constexpr std::size_t kGrantsPerCall = 50;

  /// All parts outlive the settler's last callback.
  struct Parts {
    StateLoop& state;
    Plugins& plugins;
    const LiveContainers& live;
    const Machine& machine;
    AdmissionOptions admission;
    /// Called when all lost allocations of a plugin are restored: it may want other values now.
    std::function<void(const std::string& resource)> on_taught;
  };
  explicit Settler(Parts parts) : parts_(std::move(parts)) {}

  /// Begins to resync the plugins that `plan` names, except plugins with a resync under way.
  void Settle(const ReconcilePlan& plan);

  /// The problems since the last call, one sentence each.
  std::vector<std::string> TakeProblems() { return std::exchange(problems_, {}); }

  /// No new call begins after it. Threads: any.
  void Stop() { stopped_ = true; }

 private:
  /// Makes one call to the plugin of a resource, unless it is no longer needed.
  using Step = std::function<void(std::function<void(Status)> done)>;
  using Steps = std::vector<Step>;

  bool AddTeaching(const std::string& resource, const std::set<ContainerKey>& missing,
                   Steps& steps);
  void AddReleases(const std::string& resource, const std::set<ContainerKey>& orphans,
                   Steps& steps);
  void Teach(const std::string& resource, const std::vector<ContainerKey>& keys,
             const std::function<void(Status)>& done);
  void TeachByAllocate(const std::string& resource, const ContainerKey& key,
                       const std::function<void(Status)>& done);
  void Release(const std::string& resource, const ContainerKey& key,
               const std::function<void(Status)>& done);
  void Released(const std::string& resource, const ContainerKey& key, const Status& released,
                const std::function<void(Status)>& done);
  void Next(const std::string& resource, bool teaches_anew);
  void End(const std::string& resource, bool taught);

  const Parts parts_;
  std::atomic<bool> stopped_ = false;
  std::map<std::string, Steps> under_way_;                ///< by resource
  std::map<std::string, std::set<ContainerKey>> taught_;  ///< restored, not seen in answers since
  std::set<std::string> untaught_;                        ///< endpoints without the call Restore
  std::set<std::pair<std::string, ContainerKey>> unreleasable_;  ///< the plugin cannot do it
  std::vector<std::string> problems_;
};

}  // namespace qrm::manager
