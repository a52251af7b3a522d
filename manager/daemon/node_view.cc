// Passes on what the servers ask of the daemon's parts.
#include "manager/daemon/node_view.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "checkpoint/decision_log.h"
#include "checkpoint/node_state.h"
#include "manager/admission/dry_runs.h"
#include "manager/admission/forget_plugin.h"
#include "manager/classes/class_keeper.h"
#include "manager/daemon/config_table.h"
#include "manager/daemon/live_config.h"
#include "manager/kubelet/kubelet_specs.h"
#include "manager/observability/subsystems.h"
#include "manager/podresources/pod_resources_server.h"
#include "manager/pods/pod_placer.h"
#include "manager/pods/runtime_follower.h"
#include "manager/reconcile/drift.h"
#include "manager/reconcile/reconciler.h"
#include "manager/registry/plugins.h"
#include "manager/runtime/cgroup_cpusets.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"
#include "plugins/sdk/compute_driver.h"
#include "topology/machine.h"

namespace qrm::manager {

NodeView::NodeView(const Parts& parts)
    : parts_(parts),
      loops_({{.name = "state loop",
               .post = [&state = parts.state](auto job) { state.Post(std::move(job)); }},
              {.name = "I/O loop",
               .post = [&io = parts.io](auto job) { boost::asio::post(io, std::move(job)); }}}),
      health_(std::make_unique<HealthWatch>()) {}

NodeView::~NodeView() = default;

std::vector<checkpoint::DecisionTrace> NodeView::Decisions() const {
  std::vector<checkpoint::DecisionTrace> decisions = parts_.decisions.Read();
  std::erase_if(decisions, [](const auto& trace) { return !trace.IsDecision(); });
  return decisions;
}

std::vector<checkpoint::DecisionTrace> NodeView::Events() const {
  return parts_.decisions.Read();
}

void NodeView::NoteEvent(const checkpoint::NodeEvent& event) {
  parts_.decisions.Note(event);
}

uint64_t NodeView::DecisionCount() const {
  return parts_.decisions.added();
}

void NodeView::TryDisk(std::function<void(const qrm::Status& accepted)> done) {
  parts_.state.Post([&state = parts_.state, done = std::move(done)] { done(state.Try()); });
}

void NodeView::KeepPluginValues(std::function<void(const qrm::Status& kept)> done) {
  parts_.state.Post([&state = parts_.state, done = std::move(done)] { done(state.Commit({})); });
}

placement::Permissions NodeView::GetPermissions() const {
  return parts_.live_config.Load()->admission.permissions;
}

std::vector<ClassTypeStatus> NodeView::Classes() const {
  return parts_.classes.GetStatus();
}

void NodeView::SetClass(const ClassChange& change, ClassDone done) {
  parts_.classes.Set(change, std::move(done));
}

void NodeView::TryPod(std::string pod, const std::function<void(StatusOr<DryRunReport>)>& done) {
  parts_.dry_runs.Ask(std::move(pod), done);
}

StatusOr<std::string> NodeView::AnnouncePod(const std::string& pod) {
  return parts_.specs.Announce(pod);
}

std::vector<PluginPolicy> NodeView::Policies() const {
  return parts_.live_config.Policies();
}

std::vector<std::string> NodeView::StalledLoops() {
  return loops_.Look(std::chrono::steady_clock::now());
}

std::string NodeView::RuntimeIdOf(const ContainerKey& key) const {
  const std::optional<LiveContainer> container = parts_.live.Find(key);
  return container.has_value() ? container->id.str() : std::string();
}

std::vector<UnplacedContainer> NodeView::Unplaced() const {
  return parts_.follower.placer().unplaced().List();
}

// The kernel has no cgroups for the containers of another machine.
std::string NodeView::UnappliedOf(const checkpoint::ContainerRecord& record,
                                  const LiveContainer& container) const {
  if (!container.started || parts_.config.machine.source != config::MachineConfig().source) {
    return {};
  }
  if (container.cgroups_path.empty()) {
    return "not read from the kernel: the runtime does not report its cgroup";
  }
  const StatusOr<CgroupCpuset> actual = parts_.cgroups.ReadByPath(container.cgroups_path);
  if (!actual.ok()) {
    return "not read from the kernel: " + MessageOf(actual.status());
  }
  return HasItsCpus(record, actual->cpus, parts_.machine.OfflineNow())
             ? std::string()
             : fmt::format("the kernel has CPUs {}; qrmctl status shows what is in the way",
                           ToString(actual->cpus));
}

std::optional<std::chrono::system_clock::time_point> NodeView::LastUpdateOf(
    const ContainerKey& key) const {
  return parts_.reconciler.LastUpdateOf(key);
}

void NodeView::ReconcileSoon(const std::string& resource) {
  if (sdk::IsDriverResource(resource)) {
    parts_.state.Post(
        [&placer = parts_.follower.placer(), resource] { placer.resizes().Review(resource); });
    return;
  }
  parts_.reconciler.Trigger(resource);
  parts_.pod_resources.OnPluginChanged(resource);
}

void NodeView::TryConfig(const std::string& text, const std::string& name, TrialDone done) {
  auto read = parts_.live_config.ReadText(text, name);
  if (!read.ok()) {
    done(read.status());
    return;
  }
  parts_.state.Post([&live_config = parts_.live_config, next = *std::move(read),
                     done = std::move(done)] { done(live_config.Try(next)); });
}

// The plugin's allocations are free now, so unpinned containers are tried again.
void NodeView::ForgetPlugin(const std::string& resource, Forget how, ForgetDone done) {
  parts_.state.Post([this, resource, how, done = std::move(done)] {
    if (how == Forget::kOnlyTell) {
      done(RecordsToForget(resource, *parts_.state.Load(), parts_.plugins));
      return;
    }
    const auto forgotten = manager::ForgetPlugin(resource, parts_.state, parts_.plugins);
    if (forgotten.ok()) {
      parts_.follower.placer().RetryUnplaced();
      parts_.reconciler.Trigger();
      parts_.pod_resources.OnPluginChanged(resource);
    }
    done(forgotten);
  });
}

}  // namespace qrm::manager
