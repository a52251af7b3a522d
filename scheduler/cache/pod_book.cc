// Each change sets one fact about a pod; Settle draws the conclusion.
#include "scheduler/cache/pod_book.h"

#include <set>
#include <utility>

#include "api/base/check.h"

namespace qrm::scheduler {

std::optional<StayChange> PodBook::Set(PodPtr pod) {
  const std::string uid = pod->uid;
  Record& record = records_[uid];
  record.shown = std::move(pod);
  if (record.shown->finished || !record.shown->node.empty()) {
    record.assumed_on.clear();
  }
  return Settle(uid, record);
}

std::optional<StayChange> PodBook::Delete(const std::string& uid) {
  const auto found = records_.find(uid);
  if (found == records_.end()) {
    return std::nullopt;
  }
  found->second.shown = nullptr;
  found->second.assumed_on.clear();
  return Settle(uid, found->second);
}

std::vector<StayChange> PodBook::Replace(std::vector<PodPtr> pods, uint64_t begun) {
  std::vector<StayChange> changes;
  const auto add = [&changes](std::optional<StayChange> change) {
    if (change.has_value()) {
      changes.push_back(*std::move(change));
    }
  };
  std::set<std::string> gone;
  for (const auto& [uid, record] : records_) {
    gone.insert(uid);
  }
  for (PodPtr& pod : pods) {
    const std::string uid = pod->uid;
    gone.erase(uid);
    Record& record = records_[uid];
    if (record.accepted != 0 && record.accepted <= begun) {
      record.assumed_on.clear();  // it was bound when the list began: the list tells
    }
    add(Set(std::move(pod)));
  }
  for (const std::string& uid : gone) {
    add(Delete(uid));
  }
  return changes;
}

PodPtr PodBook::Find(const std::string& uid) const {
  const auto found = records_.find(uid);
  return found == records_.end() ? nullptr : found->second.shown;
}

const Stay* PodBook::FindStay(const std::string& uid) const {
  const auto found = records_.find(uid);
  return found == records_.end() || !found->second.counts.has_value() ? nullptr
                                                                      : &*found->second.counts;
}

std::string PodBook::AssumedOn(const std::string& uid) const {
  const auto found = records_.find(uid);
  return found == records_.end() ? std::string() : found->second.assumed_on;
}

StayChange PodBook::Assume(const std::string& uid, const std::string& node,
                           const StringMap& annotations) {
  const auto found = records_.find(uid);
  QRM_CHECK(found != records_.end() && !found->second.counts.has_value());
  found->second.assumed_on = node;
  found->second.decision = annotations;
  found->second.accepted = 0;
  return Settle(uid, found->second).value_or(StayChange());
}

void PodBook::Accept(const std::string& uid) {
  const auto found = records_.find(uid);
  if (found != records_.end() && !found->second.assumed_on.empty()) {
    found->second.accepted = ++accepted_;
  }
}

std::optional<StayChange> PodBook::Release(const std::string& uid, const std::string& node) {
  const auto found = records_.find(uid);
  if (found == records_.end() || found->second.assumed_on.empty() ||
      found->second.assumed_on != node) {
    return std::nullopt;
  }
  found->second.assumed_on.clear();
  return Settle(uid, found->second);
}

std::vector<PodPtr> PodBook::refused() const {
  std::vector<PodPtr> pods;
  for (const auto& [uid, record] : records_) {
    if (record.shown != nullptr && record.shown->refused && record.assumed_on.empty()) {
      pods.push_back(record.shown);
    }
  }
  return pods;
}

std::map<std::string, std::string> PodBook::assumed() const {
  std::map<std::string, std::string> nodes;
  for (const auto& [uid, record] : records_) {
    if (!record.assumed_on.empty()) {
      nodes.emplace(uid, record.assumed_on);
    }
  }
  return nodes;
}

std::optional<Stay> PodBook::Conclude(const Record& record) {
  const PodPtr& shown = record.shown;
  if (shown == nullptr || shown->finished) {
    return std::nullopt;
  }
  if (!shown->node.empty()) {
    return Stay{.node = shown->node, .pod = shown};
  }
  if (record.assumed_on.empty()) {
    return std::nullopt;
  }
  Pod pod = *shown;
  pod.node = record.assumed_on;
  for (const auto& [key, value] : record.decision) {
    pod.annotations[key] = value;
  }
  return Stay{.node = record.assumed_on, .pod = std::make_shared<const Pod>(std::move(pod))};
}

std::optional<StayChange> PodBook::Settle(const std::string& uid, Record& record) {
  StayChange change{.before = record.counts, .after = Conclude(record)};
  if (change.before.has_value() && change.after.has_value() &&
      change.before->node == change.after->node &&
      SameButVersion(*change.before->pod, *change.after->pod)) {
    return std::nullopt;
  }
  record.counts = change.after;
  if (record.shown == nullptr) {
    records_.erase(uid);
  }
  return change.before.has_value() || change.after.has_value() ? std::optional(std::move(change))
                                                               : std::nullopt;
}

}  // namespace qrm::scheduler
