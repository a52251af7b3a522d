// What is wrong on the node, and with which containers, by the status of all parts.
#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "checkpoint/decision_log.h"
#include "checkpoint/node_state.h"
#include "manager/admission/request_rules.h"
#include "manager/classes/class_keeper.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/daemon/config_table.h"
#include "manager/daemon/live_config.h"
#include "manager/daemon/node_checks.h"
#include "manager/daemon/node_view.h"
#include "manager/daemon/process/priority.h"
#include "manager/kubelet/kubelet_policy.h"
#include "manager/kubelet/kubelet_specs.h"
#include "manager/observability/subsystems.h"
#include "manager/podresources/pod_resources_server.h"
#include "manager/pods/pod_placer.h"
#include "manager/pods/runtime_follower.h"
#include "manager/publish/publisher.h"
#include "manager/reconcile/foreign_writes.h"
#include "manager/reconcile/reconciler.h"
#include "manager/registry/plugins.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/allocation_check.h"
#include "manager/state/state_loop.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/cpu/usage.h"
#include "plugins/sdk/compute_driver.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

/// A healthy disk takes some milliseconds. The runtime waits 2 s for all plugins together.
constexpr std::chrono::milliseconds kSlowWrite{500};

Subsystem SubsystemOf(const std::string& resource) {
  return sdk::IsDriverResource(resource) ? Subsystem::kDrivers : Subsystem::kPlugins;
}

/// Whether a kubelet uses this node: without one, estimates lose nothing.
bool HasKubelet(const KubeletOptions& options) {
  std::error_code ignored;
  const std::filesystem::path socket(options.pods_socket);
  return !options.url.empty() || std::filesystem::exists(options.state_dir, ignored) ||
         std::filesystem::exists(socket.parent_path(), ignored);
}

/// `containers`, as far as there is room in a sentence.
std::string Named(const std::vector<std::string>& containers) {
  constexpr std::size_t kMost = 20;
  const auto end =
      containers.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, containers.size()));
  const std::string named = fmt::format("{}", fmt::join(containers.begin(), end, "; "));
  return containers.size() <= kMost ? named
                                    : fmt::format("{}; and {} more (qrmctl pods --unpinned)", named,
                                                  containers.size() - kMost);
}

/// Why qrmd rejects new containers: the required plugins that are not running.
void AddMissingPlugins(const Plugins& plugins, const std::vector<std::string>& required,
                       NodeStatus& status) {
  for (const std::string& resource : required) {
    const std::optional<PluginInfo> plugin = plugins.Find(resource);
    if (!plugin.has_value() || !plugin->live) {
      status.Fail(
          SubsystemOf(resource),
          fmt::format(
              "new containers are rejected while the required plugin of {} is not running: {}",
              resource,
              plugin.has_value() ? plugin->problem : "it has never registered; start it"));
    }
  }
}

/// The other plugins that are not running, and those whose latest answer was wrong.
void AddPluginProblems(const Plugins& plugins, const std::vector<std::string>& required,
                       NodeStatus& status) {
  for (const PluginInfo& plugin : plugins.List()) {
    const bool is_required =
        std::find(required.begin(), required.end(), plugin.resource) != required.end();
    if (!plugin.live && !is_required) {
      status.Degrade(
          SubsystemOf(plugin.resource),
          fmt::format("the plugin of {} is not running: {}", plugin.resource, plugin.problem));
    } else if (plugin.live && !plugin.problem.empty()) {
      status.Degrade(
          SubsystemOf(plugin.resource),
          fmt::format("the plugin of {} does not respond correctly: {} (qrm-plugin-check {} shows "
                      "more)",
                      plugin.resource, plugin.problem, plugin.endpoint));
    }
  }
}

/// NRI and CRI have a line each: without NRI, the observer follows the runtime over CRI.
void AddRuntimeReasons(NodeStatus& status) {
  const RuntimeStatus& runtime = status.runtime;
  if (runtime.mode != RuntimeMode::kNri) {
    status.Worsen(Subsystem::kNri,
                  runtime.mode == RuntimeMode::kObserver ? Health::kDegraded : Health::kFailing);
  }
  for (const std::string& reason : runtime.not_ready_reasons) {
    status.Fail(runtime.cri_reachable ? Subsystem::kNri : Subsystem::kRuntime, reason);
  }
  const std::size_t of_nri = runtime.mode == RuntimeMode::kObserver ? 1 : 0;
  for (std::size_t i = 0; i < runtime.degraded_reasons.size(); ++i) {
    status.Degrade(i < of_nri ? Subsystem::kNri : Subsystem::kRuntime, runtime.degraded_reasons[i]);
  }
}

void AddClassProblems(const std::vector<ClassTypeStatus>& types, NodeStatus& status) {
  for (const ClassTypeStatus& type : types) {
    if (!type.work.problems.empty()) {
      status.Degrade(Subsystem::kClasses,
                     fmt::format("containers or pods without all values of their {} class: {}; the "
                                 "reason for one: {}",
                                 type.offered.type.name, type.work.problems.size(),
                                 type.work.problems.front()));
    }
  }
}

/// The containers whose cpusets other processes overwrite again and again.
std::vector<std::string> LastingWriters(const ForeignWrites& writes,
                                        const checkpoint::NodeState& state) {
  std::vector<std::string> reasons;
  for (const LastingWriter& writer : writes.Lasting()) {
    const auto& [key, property, theirs, ours] = writer.latest;
    const checkpoint::PodRecord* const pod = state.FindPod(key.pod_uid);
    reasons.push_back(fmt::format(
        "another process keeps overwriting the cpuset of container {} of pod {}: qrmd corrected it "
        "{} times, the latest from {} to {}; find it, such as another NRI plugin, kubelet's "
        "managers or a script, and stop it",
        key.container,
        pod == nullptr ? key.pod_uid.str()
                       : fmt::format("{}/{}", pod->meta.pod_namespace, pod->meta.name),
        writer.times, theirs, ours));
  }
  return reasons;
}

/// The resources of `plugins` that the container of `record` requests and does not have.
std::vector<std::string> LackedBy(const checkpoint::ContainerRecord& record,
                                  const std::vector<PluginInfo>& plugins,
                                  const placement::AdmissionOptions& options) {
  std::vector<std::string> lacked;
  for (const PluginInfo& plugin : plugins) {
    // A plugin that is only on record may be disabled: its native resources are not missing.
    if (plugin.registered_by != RegisteredBy::kCheckpoint &&
        Lacks(record, plugin.resource, options)) {
      lacked.push_back(plugin.resource);
    }
  }
  std::sort(lacked.begin(), lacked.end());
  return lacked;
}

/// A pool differs from the configuration, and how to repair that.
std::string PoolWarning(const PoolStatus& pool) {
  const auto text = [](const CpuSet& cpus) { return cpus.Empty() ? "none" : ToString(cpus); };
  return fmt::format(
      "pool {} of {} has CPUs {}, but {} in the configuration; change the configuration, or run "
      "qrmctl pool set --resource {} {}={}",
      pool.pool, pool.resource, text(pool.cpus), text(pool.configured), pool.resource, pool.pool,
      ToString(pool.configured));
}

std::vector<NumaStatus> NumaStatuses(const checkpoint::NodeState& state, const Machine& machine) {
  const CpuSet owned = OwnedCpus(state);
  std::vector<NumaStatus> nodes;
  for (const NumaNode& node : machine.nodes()) {
    const auto bound = state.bound_memory().find(static_cast<uint64_t>(node.id));
    const uint64_t bytes = bound == state.bound_memory().end() ? 0 : bound->second;
    nodes.push_back(
        {.node = node.id,
         .own_cpus = (node.cpus & owned).Count(),
         .unowned_cpus = (node.cpus - owned).Count(),
         .unbound_memory_bytes = node.memory_bytes - std::min(node.memory_bytes, bytes)});
  }
  return nodes;
}

PoolClip ClipOf(cpu::PoolUsage::Clip clip) {
  switch (clip) {
    case cpu::PoolUsage::Clip::kNothing:
      return PoolClip::kNothing;
    case cpu::PoolUsage::Clip::kMax:
      return PoolClip::kMax;
    case cpu::PoolUsage::Clip::kRoom:
      return PoolClip::kRoom;
  }
  return PoolClip::kNothing;
}

void AddUsage(const cpu::CpuUsage& usage, const Machine& machine, NodeStatus& status) {
  for (const auto& [name, size] : usage.sizes) {
    PoolStatus pool{
        .resource = cpu::kResource, .pool = name, .configured = size.configured, .cpus = size.now};
    if (const auto found = usage.pools.find(name); found != usage.pools.end()) {
      pool.wished_cpus = found->second.wished;
      pool.clipped = ClipOf(found->second.clipped);
    }
    status.pools.push_back(std::move(pool));
  }
  for (NumaStatus& node : status.numa_nodes) {
    const CpuSet& cpus = machine.FindNode(node.node)->cpus;
    node.idle_cpus = (cpus & usage.idle).Count();
    node.lent_cpus = (cpus & usage.lent).Count();
    if (const auto headroom = usage.headroom.find(node.node); headroom != usage.headroom.end()) {
      node.headroom_cpus = headroom->second;
    }
  }
}

void AddDiskProblems(const StateLoop& state, std::chrono::milliseconds admission_deadline,
                     NodeStatus& status) {
  status.disk_problem = state.disk_problem();
  if (!status.disk_problem.empty()) {
    status.Fail(Subsystem::kDisk,
                fmt::format("new containers are rejected while the disk accepts no writes: {}",
                            status.disk_problem));
  }
  if (const auto took = state.write_pace().Took(std::chrono::steady_clock::now());
      took >= kSlowWrite) {
    status.Degrade(
        Subsystem::kDisk,
        fmt::format("the disk is slow: a change took {:.1f} s to save in state-dir {}, and the "
                    "creation of a container waits for that at most {:.1f} s (admission-deadline); "
                    "find what keeps the disk busy (iostat -x), or move state-dir to another disk",
                    std::chrono::duration<double>(took).count(), status.state_path,
                    std::chrono::duration<double>(admission_deadline).count()));
  }
}

void AddConfigWarnings(const LiveConfig& live_config, NodeStatus& status) {
  if (const std::string refusal = live_config.refusal(); !refusal.empty()) {
    status.warnings.push_back(fmt::format(
        "the configuration file is rejected; the previous one stays in force: {}", refusal));
  }
  for (const ChangedKey& key : live_config.waiting()) {
    status.warnings.push_back(
        fmt::format("the key {} of the configuration file waits for a restart of qrmd: {} is in "
                    "force, the file has {}",
                    key.key, key.from, key.to));
  }
}

void AddPublishProblem(NodeStatus& status) {
  if (!status.publish.problem.empty()) {
    status.Degrade(status.publish.reached ? Subsystem::kCluster : Subsystem::kApiServer,
                   fmt::format("the API server may have outdated data of this node: {}",
                               status.publish.problem));
  }
}

}  // namespace

NodeStatus NodeView::Status() const {
  NodeStatus status{.version = QRM_VERSION,
                    .started = started_,
                    .runtime = parts_.follower.GetStatus(),
                    .reconcile = parts_.reconciler.GetStatus(),
                    .publish = parts_.publisher.GetStatus(),
                    .topology_policy = std::string(ToString(parts_.config.admission.merge.policy)),
                    .state_path = parts_.config.process.state_dir,
                    .warnings = parts_.warnings};
  status.reconcile.drift_repairs = parts_.writes.repairs();
  AddRuntimeReasons(status);
  if (!parts_.config.process.enabled) {
    status.Degrade(Subsystem::kQrmd,
                   "switched off: enabled is false, so no container is placed or changed; set "
                   "enabled: true and restart qrmd");
  }
  for (const std::string& conflict : parts_.kubelet.conflicts()) {
    status.kubelet_conflicts.push_back(conflict);
    status.Fail(Subsystem::kKubelet, conflict);
  }
  AddMissingPlugins(parts_.plugins, parts_.config.admission.required_plugins, status);
  AddDiskProblems(parts_.state, parts_.config.admission.deadline, status);
  AddPluginProblems(parts_.plugins, parts_.config.admission.required_plugins, status);
  AddRequests(status);
  AddUnserved(status);
  AddConfigWarnings(parts_.live_config, status);
  AddPoolsAndNodes(status);
  status.answer_ages = parts_.pod_resources.AnswerAges();
  for (const std::string& problem : parts_.pod_resources.Problems()) {
    status.Degrade(Subsystem::kPlugins, problem);
  }
  for (const std::string& problem : parts_.checks.problems()) {
    status.Degrade(Subsystem::kQrmd, problem);
  }
  for (const std::string& problem : LastingWriters(parts_.writes, *parts_.state.Load())) {
    status.Degrade(Subsystem::kRuntime, problem);
  }
  if (const std::string problem = parts_.specs.problem(); !problem.empty()) {
    status.Degrade(Subsystem::kKubelet, problem);
  }
  if (!status.reconcile.last_problem.empty()) {
    status.Degrade(Subsystem::kRuntime,
                   fmt::format("some containers may lack their recorded values: {}",
                               status.reconcile.last_problem));
  }
  if (const std::string problem = parts_.decisions.problem(); !problem.empty()) {
    status.Degrade(
        Subsystem::kDisk,
        fmt::format("decisions are not saved, so explain loses them at a restart: {}", problem));
  }
  AddPublishProblem(status);
  if (Demotions() > 0) {
    status.Degrade(
        Subsystem::kQrmd,
        fmt::format("real-time threads that computed for too long and lost real time: {}; report "
                    "this as a fault of qrmd, and restart qrmd",
                    Demotions()));
  }
  AddSubsystems(status);
  return status;
}

void NodeView::AddRequests(NodeStatus& status) const {
  status.requests = {.source = parts_.specs.reporting(),
                     .accepted = !parts_.specs.asks_kubelet() || !HasKubelet(parts_.config.kubelet),
                     .uses_url = !parts_.config.kubelet.url.empty()};
  if (!status.requests.problem().empty()) {
    status.Degrade(Subsystem::kKubelet, status.requests.problem());
  }
}

void NodeView::AddSubsystems(NodeStatus& status) const {
  const auto state = parts_.state.Load();
  const std::vector<PluginInfo> plugins = parts_.plugins.List();
  const std::vector<ClassTypeStatus> classes = Classes();
  AddClassProblems(classes, status);
  status.subsystems = SubsystemsOf(status, {.plugins = plugins,
                                            .classes = classes,
                                            .pods = state->pod_count(),
                                            .containers = state->container_count(),
                                            .pending_removals = state->pending_removals().size()});
  health_->Note(std::chrono::steady_clock::now(), status.subsystems);
}

void NodeView::AddUnserved(NodeStatus& status) const {
  std::vector<std::string> unpinned;
  for (const UnplacedContainer& container : parts_.follower.placer().unplaced().List()) {
    if (container.state == UnplacedState::kRejected) {
      unpinned.push_back(fmt::format("{}/{}/{}: {}", container.pod_namespace, container.pod_name,
                                     container.key.container, container.why));
    }
  }
  status.unplaced_containers = unpinned.size();
  if (!unpinned.empty()) {
    status.Degrade(Subsystem::kState,
                   fmt::format("running containers without an allocation: {}; {}", unpinned.size(),
                               Named(unpinned)));
  }
  AddIncomplete(status);
  const PendingStatus pending = parts_.follower.placer().resizes().GetStatus();
  status.pending_containers = pending.containers;
  if (pending.containers > 0) {
    status.Degrade(
        Subsystem::kState,
        fmt::format("running containers with less than they request now (qrmctl pods marks them): "
                    "{}; the reason for one: {}",
                    pending.containers, pending.why));
  }
}

void NodeView::AddPoolsAndNodes(NodeStatus& status) const {
  const auto state = parts_.state.Load();
  status.numa_nodes = NumaStatuses(*state, parts_.machine);
  if (const auto usage = BuiltinCpuUsage(parts_.plugins); usage.has_value()) {
    AddUsage(*usage, parts_.machine, status);
    status.warnings.insert(status.warnings.end(), usage->problems.begin(), usage->problems.end());
  }
  for (const PoolStatus& pool : status.pools) {
    if (pool.changed()) {
      status.warnings.push_back(PoolWarning(pool));
    }
  }
}

void NodeView::AddIncomplete(NodeStatus& status) const {
  const std::vector<PluginInfo> plugins = parts_.plugins.List();
  std::vector<std::string> incomplete;
  std::vector<std::string> unanswered;
  parts_.state.Load()->ForEachPod([&](const checkpoint::PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      const ContainerKey key{pod.meta.uid, name};
      const auto lacked = LackedBy(*record, plugins, parts_.config.admission);
      if (lacked.empty() || !parts_.live.Find(key).has_value()) {
        continue;
      }
      const auto tried = parts_.follower.placer().unplaced().Find(key);
      const bool waits = tried.has_value() && tried->state == UnplacedState::kWaiting;
      (waits ? unanswered : incomplete)
          .push_back(fmt::format("{}/{}/{} without {}", pod.meta.pod_namespace, pod.meta.name, name,
                                 fmt::join(lacked, ", ")));
    }
  });
  status.incomplete_containers = incomplete.size() + unanswered.size();
  if (!unanswered.empty()) {
    status.Degrade(Subsystem::kPlugins,
                   fmt::format("plugins answered requests without an allocation, and are asked "
                               "again at least every 30 s: {}; if this lasts, see the log of the "
                               "plugin: {}",
                               unanswered.size(), Named(unanswered)));
  }
  if (!incomplete.empty()) {
    status.Degrade(
        Subsystem::kState,
        fmt::format("running containers that lack requested resources: {}; delete their pods to "
                    "recreate them: {}",
                    incomplete.size(), Named(incomplete)));
  }
}

ContainerRemarks NodeView::RemarksOf(const checkpoint::PodRecord& pod,
                                     const std::string& name) const {
  const checkpoint::ContainerRecord& record = *pod.containers.at(name);
  ContainerRemarks remarks{.implicit_requests =
                               ImplicitRequests(pod.meta, record, parts_.config.admission)};
  if (const auto container = parts_.live.Find({pod.meta.uid, name}); container.has_value()) {
    remarks.pending = parts_.follower.placer().resizes().WhyPending({pod.meta.uid, name});
    remarks.runs_without = LackedBy(record, parts_.plugins.List(), parts_.config.admission);
    const auto tried = parts_.follower.placer().unplaced().Find({pod.meta.uid, name});
    if (tried.has_value() && tried->state == UnplacedState::kRejected) {
      remarks.rejected = tried->why;
    } else if (tried.has_value()) {
      remarks.pending = tried->why;
      remarks.runs_without.clear();  // it need not be recreated
    }
    remarks.unapplied = UnappliedOf(record, *container);
    remarks.class_problems = parts_.classes.ProblemsOf({pod.meta.uid, name});
  }
  return remarks;
}

}  // namespace qrm::manager
