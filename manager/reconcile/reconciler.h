// Keeps plugins, checkpoint and running containers in agreement.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/base/io_context.h"
#include "manager/reconcile/drift.h"
#include "manager/reconcile/reconcile_options.h"
#include "manager/reconcile/reconcile_status.h"
#include "manager/state/state_loop.h"
#include "plugins/placement/admission_options.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

class ContainerRuntime;
class DriftCheck;
class LiveContainers;
class Plugins;

/// Asks the plugins for their allocations, every period and when triggered. Commits the changes,
/// updates the containers whose values differ, and commits the values that the runtime accepted. A
/// node where nothing changes sees no write and no update.
/// Every period, it checks a few containers for cpuset drift. After each update, it checks that the
/// kernel has the new values, and, for new NUMA nodes, that the memory moves. A failed update is
/// tried again in the next run; each new problem is logged once. Beside the runs, plugins are
/// resynced: they get lost allocations back and release those of unknown containers.
///
/// Threads: Start and Stop on the I/O loop or before it runs; the others any. One run at a
/// time: triggers during a run lead to one more.
class Reconciler {
 public:
  /// All parts outlive the reconciler's last callback: they are used until Stop, and the loops
  /// until they have ended.
  struct Parts {
    boost::asio::io_context& io;
    StateLoop& state;
    Plugins& plugins;
    ContainerRuntime& runtime;
    LiveContainers& live;
    const Machine& machine;
    DriftCheck& drift;
    MemorySource read_memory;
    /// Containers without exclusive CPUs get new CPUs through the cgroups that the drift check
    /// reads, and the runtime gets the update when it is idle.
    bool writes_cpusets = false;
    /// Called on the state loop in each run, with a plugin that answered.
    std::function<void(const std::string& plugin)> on_answer = [](const std::string&) {};
    /// Called on the state loop in each run that asks all plugins, after their answers.
    std::function<void()> on_whole_run = [] {};
    /// True while kubelet pins this node's containers: they get no update. Threads: any.
    std::function<bool()> stands_aside = [] { return false; };
    placement::AdmissionOptions admission = {};  ///< how plugins are asked
  };
  Reconciler(Parts parts, ReconcileOptions options);
  ~Reconciler();
  Reconciler(const Reconciler&) = delete;
  Reconciler& operator=(const Reconciler&) = delete;

  void Start();
  /// No new run, and no new call to plugins or runtime, begins after it.
  void Stop();
  /// Starts a run as soon as no other runs: for the plugin of `resource`, or for all when empty.
  void Trigger(const std::string& resource = {});
  /// Starts a small run as soon as no other runs, after an admission or a removal. It asks plugins
  /// only for their changes since the last small run, and updates the changed containers and
  /// `started`, if any. Cost: does not grow with the node, except that a plugin that cannot report
  /// changes is asked for everything.
  void TriggerChanges(const std::optional<ContainerKey>& started = {});
  /// The same within kSoon, unless another run asks meanwhile: for changes that are not urgent,
  /// such as CPUs that became free. An admission may follow at once.
  void TriggerChangesSoon();
  static constexpr std::chrono::milliseconds kSoon{20};
  ReconcileStatus GetStatus() const;
  /// When the runtime last accepted an update of the container; absent before the first update.
  std::optional<std::chrono::system_clock::time_point> LastUpdateOf(const ContainerKey& key) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
