// Queues questions by plugin; each answer starts the next question.
#include "manager/podresources/placement_asker.h"

#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "api/base/mutex.h"
#include "manager/registry/plugins.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {
namespace {

using checkpoint::PodRecord;

struct PlacementQuestion {
  PlacementAsker::StatePtr state;  // keeps `pod` alive
  const PodRecord* pod;
  std::string container;
};

/// The questions for one plugin.
struct Lane {
  std::deque<PlacementQuestion> queue;
  int under_way = 0;
  bool pumping = false;
};

std::set<std::string> PluginsToAsk(const Plugins& plugins, const std::set<std::string>& only) {
  std::set<std::string> resources;
  for (const PluginInfo& info : plugins.List()) {
    const bool is_meant = only.empty() || only.contains(info.resource);
    if (is_meant && info.live && info.registered_by != RegisteredBy::kBuiltIn &&
        !sdk::IsDriverResource(info.resource)) {
      resources.insert(info.resource);
    }
  }
  return resources;
}

/// True for failures of the plugin, which say nothing about the container.
bool IsAway(const Status& status) {
  return status.code() == StatusCode::kUnavailable ||
         status.code() == StatusCode::kDeadlineExceeded;
}

}  // namespace

struct PlacementAsker::State : std::enable_shared_from_this<State> {
  State(Plugins& all_plugins, prometheus::Family<prometheus::Counter>& errors,
        std::chrono::milliseconds call_timeout, Listener told_listener)
      : plugins(all_plugins),
        timeout(call_timeout),
        listener(std::move(told_listener)),
        failures("the NUMA nodes of its containers' allocations", errors) {}

  /// Asks while there are questions and room. A plugin that is not running answers within the call:
  /// then the thread that pumps continues, and no other thread begins.
  void Pump(const std::string& resource) {
    {
      const MutexLock lock(mutex);
      if (std::exchange(lanes[resource].pumping, true)) {
        return;
      }
    }
    for (auto question = Next(resource); question.has_value(); question = Next(resource)) {
      const ContainerKey key{.pod_uid = question->pod->meta.uid, .container = question->container};
      plugins.Ask<calls::GetPlacement>(
          resource, key, DeadlineAfter(timeout),
          [self = shared_from_this(), resource,
           question = *std::move(question)](const StatusOr<ContainerPlacement>& answer) {
            self->Take(resource, question, answer);
            self->Pump(resource);
          });
    }
  }

  std::optional<PlacementQuestion> Next(const std::string& resource) {
    const MutexLock lock(mutex);
    Lane& lane = lanes[resource];
    if (lane.queue.empty() || lane.under_way == kAtOnce) {
      lane.pumping = false;
      return std::nullopt;
    }
    ++lane.under_way;
    PlacementQuestion question = std::move(lane.queue.front());
    lane.queue.pop_front();
    return question;
  }

  void Take(const std::string& resource, const PlacementQuestion& question,
            const StatusOr<ContainerPlacement>& answer) {
    const bool away = IsAway(answer.status());
    const bool cannot_tell = answer.status().code() == StatusCode::kUnimplemented;
    if (answer.ok()) {
      failures.Forget(resource);
      listener.on_told(question.state, *question.pod, question.container, answer->resources);
    } else if (!cannot_tell) {
      failures.Add(resource, answer.status());
    }
    if (away) {
      listener.on_away(resource);
    }
    const MutexLock lock(mutex);
    Lane& lane = lanes[resource];
    --lane.under_way;
    if (away || cannot_tell) {
      lane.queue.clear();
    }
  }

  Plugins& plugins;
  const std::chrono::milliseconds timeout;
  const Listener listener;
  PluginFailures failures;
  Mutex mutex;
  std::map<std::string, Lane> lanes QRM_GUARDED_BY(mutex);  // by resource
};

PlacementAsker::PlacementAsker(Plugins& plugins, prometheus::Family<prometheus::Counter>& errors,
                               std::chrono::milliseconds timeout, Listener listener)
    : state_(std::make_shared<State>(plugins, errors, timeout, std::move(listener))) {}

PlacementAsker::~PlacementAsker() {
  const MutexLock lock(state_->mutex);
  for (auto& [resource, lane] : state_->lanes) {
    lane.queue.clear();
  }
}

void PlacementAsker::Ask(const StatePtr& state, const std::vector<const PodRecord*>& pods,
                         const std::set<std::string>& only) {
  if (pods.empty()) {
    return;
  }
  const std::set<std::string> resources = PluginsToAsk(state_->plugins, only);
  if (resources.empty()) {
    return;
  }
  {
    const MutexLock lock(state_->mutex);
    for (const PodRecord* pod : pods) {
      for (const auto& [container, record] : pod->containers) {
        for (const auto& [resource, allocation] : record->allocations) {
          if (resources.contains(resource)) {
            state_->lanes[resource].queue.push_back({state, pod, container});
          }
        }
      }
    }
  }
  for (const std::string& resource : resources) {
    state_->Pump(resource);
  }
}

PluginFailures& PlacementAsker::failures() {
  return state_->failures;
}

}  // namespace qrm::manager
