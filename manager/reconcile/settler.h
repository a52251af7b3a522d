// Settles what plugins and checkpoint disagree about: the records are right.
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

#include "manager/reconcile/plan.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"
#include "plugins/placement/admission_options.h"
#include "topology/machine.h"

namespace qrm::manager {

class Plugins;

/// Teaches plugins what they gave and no longer know, and takes back what they hold for nobody. One
/// call to a plugin is under way at a time, at most kCallsPerRun a run, and a plugin that fails one
/// gets no more of them in that run. Nothing waits for the answers: each call begins as a job of
/// the state loop, by the records of that moment, so that an admission comes before or after it.
///
/// Threads: the state loop only.
class Settler : public std::enable_shared_from_this<Settler> {
 public:
  static constexpr std::size_t kCallsPerRun = 100;
  /// Grants that are taught with one call.
  static constexpr std::size_t kGrantsPerCall = 50;

  /// All of them outlive the settler's last callback.
  struct Parts {
    StateLoop& state;
    Plugins& plugins;
    const LiveContainers& live;
    const Machine& machine;
    placement::AdmissionOptions admission;
    /// Called when a plugin has learnt all that it lacked: it may want other values now.
    std::function<void(const std::string& resource)> on_taught;
  };
  explicit Settler(Parts parts) : parts_(std::move(parts)) {}

  /// Begins to settle what `plan` found, but with plugins where that is under way.
  void Settle(const ReconcilePlan& plan);

  /// What went wrong since the last question, one sentence each.
  std::vector<std::string> TakeProblems() { return std::exchange(problems_, {}); }

  /// No new call begins after it. Threads: any.
  void Stop() { stopped_ = true; }

 private:
  /// One call; begins at the plugin of the resource, unless there is nothing to do any more.
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
  std::map<std::string, std::set<ContainerKey>> taught_;  ///< and not seen in an answer since
  std::set<std::string> untaught_;  ///< endpoints that have no call for being taught
  std::set<std::pair<std::string, ContainerKey>> unreleasable_;  ///< the plugin cannot do it
  std::vector<std::string> problems_;
};

}  // namespace qrm::manager
