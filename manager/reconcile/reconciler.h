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
#include "manager/reconcile/moved_memory.h"
#include "manager/reconcile/reconcile_options.h"
#include "manager/reconcile/reconcile_status.h"
#include "manager/runtime/cri/cri_client.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"
#include "plugins/placement/admission_options.h"
#include "topology/machine.h"

namespace qrm::manager {

class Plugins;

/// Asks the plugins for their allocations, every period and when triggered; commits what changed,
/// brings it to the containers that have other values, and commits what the runtime took. A node
/// where nothing changes sees no write and no update. Every period it also looks whether the next
/// few containers still have what the runtime took, and after each update whether it arrived; where
/// that were other NUMA nodes, also whether the memory followed. An
/// update that fails is tried again in the next run; each new problem is logged once. What plugins
/// lost is taught to them again, and what they hold for nobody is taken back, beside the runs.
///
/// Threads: Start and Stop on the I/O loop or before it runs; the others any. One run at a
/// time: triggers during a run lead to one more.
class Reconciler {
 public:
  /// All of them outlive the reconciler's last callback: they are used until Stop, and the loops
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
    /// Containers without exclusive CPUs get theirs by their cgroups, as the drift check finds
    /// them, and the runtime is told when it has time.
    bool writes_cpusets = false;
    /// Called on the state loop in each run, with a plugin that answered.
    std::function<void(const std::string& plugin)> on_answer = [](const std::string&) {};
    /// Called on the state loop in each run that asks all plugins, after their answers.
    std::function<void()> on_whole_run = [] {};
    /// Somebody else pins this node's containers: they get no update. Threads: any.
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
  /// A run as soon as none is under way: of the plugin of `resource` only, or of all when empty.
  void Trigger(const std::string& resource = {});
  /// A small run as soon as none is under way, after an admission or a removal: asks for what
  /// plugins changed since they were last asked so, and brings that to its containers and what is
  /// on record to `started`, if any. Cost: does not grow with the node, but for plugins that cannot
  /// tell, which are asked for everything.
  void TriggerChanges(const std::optional<ContainerKey>& started = {});
  /// The same within kSoon, unless another run asks meanwhile: for what nobody waits for, such as
  /// CPUs that became free, beside which an admission may come at once.
  void TriggerChangesSoon();
  static constexpr std::chrono::milliseconds kSoon{20};
  ReconcileStatus GetStatus() const;
  /// When the runtime last took an update of the container; absent before the first one.
  std::optional<std::chrono::system_clock::time_point> LastUpdateOf(const ContainerKey& key) const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qrm::manager
