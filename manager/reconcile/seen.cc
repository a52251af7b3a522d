// Finds what changed between two runs.
#include "manager/reconcile/seen.h"

#include <utility>

#include "api/base/check.h"

namespace qrm::manager {

using checkpoint::NodeState;
using checkpoint::PodRecord;

namespace {

void AddPodsOf(const std::map<std::string, std::set<ContainerKey>>& keys_by_plugin,
               const std::string& plugin, PodSet& pods) {
  const auto found = keys_by_plugin.find(plugin);
  if (found != keys_by_plugin.end()) {
    for (const ContainerKey& key : found->second) {
      pods.insert(key.pod_uid);
    }
  }
}

}  // namespace

PodsByPlugin ComparedAnswers::ToCompare(const Inquiry& inquiry, const AllocationsByPlugin& answers,
                                        const NodeState& now) const {
  const Speakers speakers = SpeakersOf(inquiry, answers);
  PodsByPlugin scope;
  for (const auto& [plugin, answer] : answers) {
    const auto last = last_.find(plugin);
    if (!answer.ok() || last == last_.end() || last->second.speakers != speakers) {
      continue;
    }
    PodSet pods = calls::PodsUnlike(*last->second.answer, **answer);
    pods.merge(now.PodsUnlike(*last->second.state));
    pods.insert(last->second.unsettled.begin(), last->second.unsettled.end());
    scope.emplace(plugin, std::move(pods));
  }
  return scope;
}

void ComparedAnswers::Note(const Inquiry& inquiry, const AllocationsByPlugin& answers,
                           const ReconcilePlan& plan) {
  if (inquiry.whole) {
    last_.clear();  // also of plugins that are gone
  }
  const Speakers speakers = SpeakersOf(inquiry, answers);
  for (const auto& [plugin, answer] : answers) {
    if (answer.ok()) {
      PodSet unsettled = plan.refused;
      AddPodsOf(plan.orphans, plugin, unsettled);
      AddPodsOf(plan.missing, plugin, unsettled);
      last_.insert_or_assign(plugin,
                             Comparison{*answer, inquiry.state, speakers, std::move(unsettled)});
    }
  }
}

ComparedAnswers::Speakers ComparedAnswers::SpeakersOf(const Inquiry& inquiry,
                                                      const AllocationsByPlugin& answers) {
  Speakers speakers = inquiry.unasked;
  for (const auto& [plugin, answer] : answers) {
    speakers.insert(plugin);
  }
  return speakers;
}

std::map<ContainerKey, LiveContainer> UpdatedContainers::ToUpdate(
    const std::shared_ptr<const NodeState>& now, const CpuSet& offline) {
  const uint64_t revision = live_.revision();  // before the read: later changes are seen next time
  const std::optional<std::set<ContainerKey>> keys = Unlike(*now, offline);
  last_ = Plan{now, revision, offline, {}};
  return keys.has_value() ? FindLive(live_, *keys) : live_.All();
}

std::optional<std::set<ContainerKey>> UpdatedContainers::Unlike(const NodeState& now,
                                                                const CpuSet& offline) const {
  if (!last_.has_value() || last_->offline != offline) {
    return std::nullopt;
  }
  std::optional<std::set<ContainerKey>> keys = live_.ChangedSince(last_->revision);
  if (!keys.has_value()) {
    return std::nullopt;
  }
  keys->merge(live_.DeferredKeys());
  for (const SharedText& uid : now.PodsUnlike(*last_->state)) {
    if (const PodRecord* const pod = now.FindPod(uid); pod != nullptr) {
      for (const auto& [container, record] : pod->containers) {
        keys->insert({uid, container});
      }
    }
  }
  keys->insert(last_->updated.begin(), last_->updated.end());
  return keys;
}

void UpdatedContainers::Note(const std::vector<PlannedUpdate>& updates) {
  QRM_CHECK(last_.has_value());
  for (const PlannedUpdate& update : updates) {
    last_->updated.insert(update.key);
  }
}

std::map<ContainerKey, LiveContainer> FindLive(const LiveContainers& live,
                                               const std::set<ContainerKey>& keys) {
  std::map<ContainerKey, LiveContainer> found;
  for (const ContainerKey& key : keys) {
    if (std::optional<LiveContainer> container = live.Find(key); container.has_value()) {
      found.emplace(key, *std::move(container));
    }
  }
  return found;
}

}  // namespace qrm::manager
