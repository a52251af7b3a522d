// A queue of questions; each answer makes room for the next one.
#include "manager/podresources/placement_asker.h"

#include <deque>
#include <optional>
#include <utility>

#include <prometheus/counter.h>
#include <prometheus/family.h>

#include "api/log.h"
#include "api/mutex.h"

namespace qrm::manager {
namespace {

using checkpoint::PodRecord;

/// The questions about one pod; the last answer ends it.
struct Round {
  Round(PlacementAsker::StatePtr node_state, const PodRecord& asked_pod)
      : state(std::move(node_state)), pod(asked_pod) {}

  const PlacementAsker::StatePtr state;  // keeps `pod` alive
  const PodRecord& pod;
  Mutex mutex;
  std::size_t left QRM_GUARDED_BY(mutex) = 0;
  PodPlacements placements QRM_GUARDED_BY(mutex);
};

struct Question {
  std::shared_ptr<Round> round;
  std::string container;
  std::string resource;
};

std::set<std::string> PluginsToAsk(const Plugins& plugins, const std::set<std::string>& only) {
  std::set<std::string> resources;
  for (const PluginInfo& info : plugins.List()) {
    const bool is_meant = only.empty() || only.contains(info.resource);
    if (is_meant && info.live && info.registered_by != RegisteredBy::kBuiltIn) {
      resources.insert(info.resource);
    }
  }
  return resources;
}

std::vector<Question> QuestionsAbout(const PlacementAsker::StatePtr& state, const PodRecord& pod,
                                     const std::set<std::string>& resources) {
  const auto round = std::make_shared<Round>(state, pod);
  std::vector<Question> questions;
  for (const auto& [name, record] : pod.containers) {
    for (const auto& [resource, allocation] : record->allocations) {
      if (resources.contains(resource)) {
        questions.push_back({.round = round, .container = name, .resource = resource});
      }
    }
  }
  const MutexLock lock(round->mutex);
  round->left = questions.size();
  return questions;
}

}  // namespace

struct PlacementAsker::State : std::enable_shared_from_this<State> {
  State(Plugins& all_plugins, prometheus::Family<prometheus::Counter>& error_family,
        std::chrono::milliseconds call_timeout, Told on_told)
      : plugins(all_plugins),
        errors(error_family),
        timeout(call_timeout),
        told(std::move(on_told)) {}

  /// Asks while there is something to ask and room. A plugin that is away answers inside the call:
  /// the thread that pumps goes on then, and no other begins.
  void Pump() {
    {
      const MutexLock lock(mutex);
      if (std::exchange(pumping, true)) {
        return;
      }
    }
    for (auto question = Next(); question.has_value(); question = Next()) {
      const ContainerKey key{.pod_uid = question->round->pod.meta.uid,
                             .container = question->container};
      const std::string resource = question->resource;
      plugins.GetPlacement(key, resource, DeadlineAfter(timeout),
                           [self = shared_from_this(),
                            question = *std::move(question)](StatusOr<PlacedByResource> answer) {
                             self->Take(question, std::move(answer));
                             self->Pump();
                           });
    }
  }

  std::optional<Question> Next() {
    const MutexLock lock(mutex);
    if (queue.empty() || under_way == kAtOnce) {
      pumping = false;
      return std::nullopt;
    }
    ++under_way;
    Question question = std::move(queue.front());
    queue.pop_front();
    return question;
  }

  void Take(const Question& question, StatusOr<PlacedByResource> answer) {
    if (!answer.ok() && answer.status().code() != StatusCode::kUnimplemented) {
      errors.Add({{"resource", question.resource}}).Increment();
      log::Debug("placement unknown",
                 {{"resource", question.resource}, {"reason", MessageOf(answer.status())}});
    }
    std::optional<PodPlacements> complete;
    {
      Round& round = *question.round;
      const MutexLock lock(round.mutex);
      if (answer.ok()) {
        round.placements[question.container].merge(*std::move(answer));
      }
      if (--round.left == 0) {
        complete = std::move(round.placements);
      }
    }
    if (complete.has_value()) {
      told(question.round->state, question.round->pod, *complete);
    }
    const MutexLock lock(mutex);
    --under_way;
  }

  Plugins& plugins;
  prometheus::Family<prometheus::Counter>& errors;
  const std::chrono::milliseconds timeout;
  const Told told;
  Mutex mutex;
  std::deque<Question> queue QRM_GUARDED_BY(mutex);
  int under_way QRM_GUARDED_BY(mutex) = 0;
  bool pumping QRM_GUARDED_BY(mutex) = false;
};

PlacementAsker::PlacementAsker(Plugins& plugins, prometheus::Family<prometheus::Counter>& errors,
                               std::chrono::milliseconds timeout, Told told)
    : state_(std::make_shared<State>(plugins, errors, timeout, std::move(told))) {}

PlacementAsker::~PlacementAsker() {
  const MutexLock lock(state_->mutex);
  state_->queue.clear();
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
  for (const PodRecord* pod : pods) {
    std::vector<Question> questions = QuestionsAbout(state, *pod, resources);
    const MutexLock lock(state_->mutex);
    for (Question& question : questions) {
      state_->queue.push_back(std::move(question));
    }
  }
  state_->Pump();
}

}  // namespace qrm::manager
