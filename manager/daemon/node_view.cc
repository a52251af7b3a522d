// Joins the statuses of the parts.
#include "manager/daemon/node_view.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "manager/admission/forget_plugin.h"
#include "manager/daemon/priority.h"

namespace qrm::manager {
namespace {

void Append(std::vector<std::string> more, std::vector<std::string>& reasons) {
  reasons.insert(reasons.end(), std::make_move_iterator(more.begin()),
                 std::make_move_iterator(more.end()));
}

/// Why no new container is placed: the plugins of `required` that are away.
std::vector<std::string> MissingPlugins(const Plugins& plugins,
                                        const std::vector<std::string>& required) {
  std::vector<std::string> reasons;
  for (const std::string& resource : required) {
    const std::optional<PluginInfo> plugin = plugins.Find(resource);
    if (!plugin.has_value() || !plugin->live) {
      reasons.push_back(fmt::format(
          "new containers are refused while the plugin of {} is away, which is in "
          "required-plugins: {}",
          resource, plugin.has_value() ? plugin->problem : "it has never registered; start it"));
    }
  }
  return reasons;
}

/// What those that request from plugins which are away, or answer wrongly, have to expect.
std::vector<std::string> PluginProblems(const Plugins& plugins,
                                        const std::vector<std::string>& required) {
  std::vector<std::string> reasons;
  for (const PluginInfo& plugin : plugins.List()) {
    const bool is_required =
        std::find(required.begin(), required.end(), plugin.resource) != required.end();
    if (!plugin.live && !is_required) {
      reasons.push_back(
          fmt::format("the plugin of {} is away: {}", plugin.resource, plugin.problem));
    } else if (plugin.live && !plugin.problem.empty()) {
      reasons.push_back(
          fmt::format("the plugin of {} answers wrongly: {}", plugin.resource, plugin.problem));
    }
  }
  return reasons;
}

}  // namespace

NodeView::NodeView(const Parts& parts)
    : parts_(parts),
      loops_({{.name = "state loop",
               .post = [&state = parts.state](auto job) { state.Post(std::move(job)); }},
              {.name = "I/O loop",
               .post = [&io = parts.io](auto job) { boost::asio::post(io, std::move(job)); }}}) {}

std::vector<std::string> NodeView::StalledLoops() {
  return loops_.Look(std::chrono::steady_clock::now());
}

NodeStatus NodeView::Status() const {
  NodeStatus status{.version = QRM_VERSION,
                    .started = started_,
                    .kubelet_conflicts = parts_.kubelet.conflicts(),
                    .runtime = parts_.follower.GetStatus(),
                    .reconcile = parts_.reconciler.GetStatus(),
                    .publish = parts_.publisher.GetStatus(),
                    .topology_policy = std::string(ToString(parts_.config.admission.merge.policy)),
                    .state_path = parts_.config.process.state_dir,
                    .warnings = parts_.warnings};
  status.reconcile.drift_repairs = parts_.writes.repairs();
  Append(status.runtime.not_ready_reasons, status.not_ready_reasons);
  Append(status.kubelet_conflicts, status.not_ready_reasons);
  Append(MissingPlugins(parts_.plugins, parts_.config.admission.required_plugins),
         status.not_ready_reasons);
  if (const std::string disk = parts_.state.disk_problem(); !disk.empty()) {
    status.not_ready_reasons.push_back(
        fmt::format("new containers are refused while the disk refuses changes: {}", disk));
  }
  Append(PluginProblems(parts_.plugins, parts_.config.admission.required_plugins),
         status.degraded_reasons);
  const UnplacedStatus unplaced = parts_.follower.unplaced();
  status.unplaced_containers = unplaced.containers;
  if (unplaced.containers > 0) {
    status.degraded_reasons.push_back(
        fmt::format("running containers without a place: {}, one "
                    "since {}",
                    unplaced.containers, unplaced.why));
  }
  Append(parts_.pod_resources.Problems(), status.degraded_reasons);
  Append(status.runtime.degraded_reasons, status.degraded_reasons);
  if (const std::string problem = parts_.decisions.problem(); !problem.empty()) {
    status.degraded_reasons.push_back(
        fmt::format("explain forgets with this process why containers were placed: {}", problem));
  }
  if (!status.publish.problem.empty()) {
    status.degraded_reasons.push_back(fmt::format(
        "the API server may not know the latest of this node: {}", status.publish.problem));
  }
  if (Demotions() > 0) {
    status.degraded_reasons.push_back(
        fmt::format("{} of the threads that ran in real time computed for too long and goes on "
                    "without it; report why, and start qrmd again",
                    Demotions()));
  }
  return status;
}

std::string NodeView::RuntimeIdOf(const ContainerKey& key) const {
  const std::optional<LiveContainer> container = parts_.live.Find(key);
  return container.has_value() ? container->id : std::string();
}

std::optional<std::chrono::system_clock::time_point> NodeView::LastUpdateOf(
    const ContainerKey& key) const {
  return parts_.reconciler.LastUpdateOf(key);
}

void NodeView::ReconcileSoon(const std::string& resource) {
  parts_.reconciler.Trigger(resource);
  parts_.pod_resources.OnPluginChanged(resource);
}

// What it gave is free now for others.
void NodeView::ForgetPlugin(const std::string& resource, Forget how, ForgetDone done) {
  parts_.state.Post([this, resource, how, done = std::move(done)] {
    if (how == Forget::kOnlyTell) {
      done(RecordsToForget(resource, *parts_.state.Load(), parts_.plugins));
      return;
    }
    const auto forgotten = manager::ForgetPlugin(resource, parts_.state, parts_.plugins);
    if (forgotten.ok()) {
      parts_.follower.RetryUnplaced();
      parts_.reconciler.Trigger();
      parts_.pod_resources.OnPluginChanged(resource);
    }
    done(forgotten);
  });
}

}  // namespace qrm::manager
