// Implements NodeServices: the daemon as its edges see it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/base/io_context.h"
#include "api/base/mutex.h"
#include "checkpoint/decision_log.h"
#include "checkpoint/node_state.h"
#include "manager/admission/dry_runs.h"
#include "manager/classes/class_keeper.h"
#include "manager/daemon/config.h"
#include "manager/daemon/config_in_force.h"
#include "manager/daemon/config_trials.h"
#include "manager/kubelet/kubelet_specs.h"
#include "manager/kubelet/kubelet_watch.h"
#include "manager/observability/loop_watch.h"
#include "manager/observability/node_services.h"
#include "manager/podresources/pod_resources_server.h"
#include "manager/pods/runtime_follower.h"
#include "manager/publish/publisher.h"
#include "manager/reconcile/foreign_writes.h"
#include "manager/reconcile/reconciler.h"
#include "manager/registry/plugins.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"
#include "plugins/cpu/usage.h"
#include "topology/machine.h"

namespace qrm::manager {

/// Joins what the parts know of themselves. Threads: any.
class NodeView final : public NodeServices {
 public:
  /// All outlive the view; `warnings` change no more once somebody asks.
  struct Parts {
    boost::asio::io_context& io;
    StateLoop& state;
    Plugins& plugins;
    RuntimeFollower& follower;
    Reconciler& reconciler;
    checkpoint::DecisionLog& decisions;
    DryRuns& dry_runs;
    PodResourcesServer& pod_resources;
    const Publisher& publisher;
    const LiveContainers& live;
    const ForeignWrites& writes;
    ClassKeeper& classes;
    KubeletSpecs& specs;
    const KubeletWatch& kubelet;
    const Machine& machine;
    const std::vector<std::string>& warnings;
    const Config& config;
    const ConfigInForce& in_force;
    const ConfigTrials& trials;
  };
  explicit NodeView(const Parts& parts);

  NodeStatus Status() const override;
  std::vector<std::string> StalledLoops() override;
  std::string RuntimeIdOf(const ContainerKey& key) const override;
  ContainerRemarks RemarksOf(const checkpoint::PodRecord& pod,
                             const std::string& name) const override;
  std::optional<std::chrono::system_clock::time_point> LastUpdateOf(
      const ContainerKey& key) const override;
  std::vector<checkpoint::DecisionTrace> Decisions() const override {
    return parts_.decisions.Read();
  }
  uint64_t DecisionCount() const override { return parts_.decisions.added(); }
  void ReconcileSoon(const std::string& resource) override;
  void ForgetPlugin(const std::string& resource, Forget how, ForgetDone done) override;
  void KeepPluginValues(std::function<void(const qrm::Status& kept)> done) override {
    parts_.state.Post([&state = parts_.state, done = std::move(done)] { done(state.Commit({})); });
  }
  const Permissions& GetPermissions() const override { return parts_.config.admission.permissions; }
  std::vector<ClassTypeStatus> Classes() const override { return parts_.classes.GetStatus(); }
  void SetClass(const ClassChange& change, ClassDone done) override {
    parts_.classes.Set(change, std::move(done));
  }
  void TryPod(std::string pod, const std::function<void(StatusOr<DryRunReport>)>& done) override {
    parts_.dry_runs.Ask(std::move(pod), done);
  }
  StatusOr<std::string> AnnouncePod(const std::string& pod) override {
    return parts_.specs.Announce(pod);
  }
  std::vector<PluginPolicy> Policies() const override { return parts_.trials.Policies(); }
  void TryConfig(const std::string& text, const std::string& name, TrialDone done) override;

 private:
  void AddIncomplete(NodeStatus& status) const;
  void AddPoolsAndNodes(NodeStatus& status) const;
  /// Absent where the cpu plugin is a process, or has no section.
  std::optional<cpu::CpuUsage> CpuUsageOf(
      const std::shared_ptr<const checkpoint::NodeState>& state) const;

  const Parts parts_;
  LoopWatch loops_;

  /// How CPUs stood by one state and one configuration: it is asked for again and again.
  struct KnownUsage {
    std::shared_ptr<const checkpoint::NodeState> state;
    std::shared_ptr<const ConfigInForce::Keys> keys;
    std::optional<cpu::CpuUsage> usage;
  };
  mutable Mutex mutex_;
  mutable KnownUsage known_ QRM_GUARDED_BY(mutex_);
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace qrm::manager
