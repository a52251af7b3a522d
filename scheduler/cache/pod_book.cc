// Each change sets one fact about a pod; Settle draws the conclusion.
#include "scheduler/cache/pod_book.h"

#include <set>
#include <utility>

#include "api/base/check.h"

namespace qrm::scheduler {

std::optional<StayChange> PodBook::Set(Pod pod) {
  return Set(Pack(std::move(pod), texts_));
}

std::optional<StayChange> PodBook::Set(PackedPodPtr pod) {
  const std::string uid = pod->uid;
  Record& record = records_[uid];
  // Most events change nothing of what is kept: then one object is enough.
  record.shown =
      record.counts != nullptr && *record.counts == *pod ? record.counts : std::move(pod);
  if (record.shown->finished || !record.shown->node->empty()) {
    record.assumed.reset();
  }
  return Settle(uid, record);
}

std::optional<StayChange> PodBook::Delete(const std::string& uid) {
  const auto found = records_.find(uid);
  if (found == records_.end()) {
    return std::nullopt;
  }
  found->second.shown = nullptr;
  found->second.assumed.reset();
  return Settle(uid, found->second);
}

uint64_t PodBook::BeginList() {
  listed_.clear();
  return accepted_;
}

std::vector<StayChange> PodBook::Replace(uint64_t begun) {
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
  for (PackedPodPtr& pod : std::exchange(listed_, {})) {
    gone.erase(pod->uid);
    Record& record = records_[pod->uid];
    if (record.assumed != nullptr && record.assumed->accepted != 0 &&
        record.assumed->accepted <= begun) {
      record.assumed.reset();  // it was bound when the list began: the list decides
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
  return found == records_.end() || found->second.shown == nullptr
             ? nullptr
             : std::make_shared<const Pod>(Unpack(*found->second.shown));
}

PackedPodPtr PodBook::FindStay(const std::string& uid) const {
  const auto found = records_.find(uid);
  return found == records_.end() ? nullptr : found->second.counts;
}

std::vector<PodPtr> PodBook::FindAll(const std::string& words) const {
  std::vector<PodPtr> pods;
  for (const auto& [uid, record] : records_) {
    const PackedPodPtr& pod = record.shown;
    if (pod != nullptr &&
        (pod->name == words || uid == words || *pod->pod_namespace + "/" + pod->name == words)) {
      pods.push_back(std::make_shared<const Pod>(Unpack(*pod)));
    }
  }
  return pods;
}

std::string PodBook::AssumedOn(const std::string& uid) const {
  const auto found = records_.find(uid);
  return found == records_.end() || found->second.assumed == nullptr ? std::string()
                                                                     : found->second.assumed->node;
}

StayChange PodBook::Assume(const std::string& uid, const std::string& node,
                           const StringMap& annotations) {
  const auto found = records_.find(uid);
  QRM_CHECK(found != records_.end() && found->second.counts == nullptr);
  found->second.assumed =
      std::make_unique<Assumption>(Assumption{.node = node, .decision = annotations});
  return Settle(uid, found->second).value_or(StayChange());
}

void PodBook::Accept(const std::string& uid) {
  const auto found = records_.find(uid);
  if (found != records_.end() && found->second.assumed != nullptr) {
    found->second.assumed->accepted = ++accepted_;
  }
}

std::optional<StayChange> PodBook::Release(const std::string& uid, const std::string& node) {
  const auto found = records_.find(uid);
  if (found == records_.end() || found->second.assumed == nullptr ||
      found->second.assumed->node != node) {
    return std::nullopt;
  }
  found->second.assumed.reset();
  return Settle(uid, found->second);
}

std::shared_ptr<const Nominated> PodBook::nominated() {
  if (by_node_ == nullptr && !nominated_.empty()) {
    Nominated by_node;
    for (const auto& [uid, pod] : nominated_) {
      by_node[*pod->nominated].push_back(std::make_shared<const Pod>(Unpack(*pod)));
    }
    by_node_ = std::make_shared<const Nominated>(std::move(by_node));
  }
  return by_node_;
}

std::vector<PodPtr> PodBook::refused() const {
  std::vector<PodPtr> pods;
  for (const auto& [uid, record] : records_) {
    if (record.shown != nullptr && record.shown->refused && record.assumed == nullptr) {
      pods.push_back(std::make_shared<const Pod>(Unpack(*record.shown)));
    }
  }
  return pods;
}

std::map<std::string, std::string> PodBook::assumed() const {
  std::map<std::string, std::string> nodes;
  for (const auto& [uid, record] : records_) {
    if (record.assumed != nullptr) {
      nodes.emplace(uid, record.assumed->node);
    }
  }
  return nodes;
}

PackedPodPtr PodBook::Conclude(const Record& record) {
  const PackedPodPtr& shown = record.shown;
  if (shown == nullptr || shown->finished) {
    return nullptr;
  }
  if (!shown->node->empty()) {
    return shown;
  }
  if (record.assumed == nullptr) {
    return nullptr;
  }
  Pod pod = Unpack(*shown);
  pod.node = record.assumed->node;
  for (const auto& [key, value] : record.assumed->decision) {
    pod.annotations[key] = value;
  }
  return Pack(std::move(pod), texts_);
}

void PodBook::Nominate(const std::string& uid, const Record& record) {
  const PackedPodPtr& pod = record.shown;
  const bool waits = pod != nullptr && !pod->finished && !pod->ending && pod->node->empty() &&
                     record.assumed == nullptr && !pod->nominated->empty();
  const auto known = nominated_.find(uid);
  if (waits ? known != nominated_.end() && *known->second == *pod : known == nominated_.end()) {
    return;
  }
  by_node_ = nullptr;
  if (waits) {
    nominated_[uid] = pod;
  } else {
    nominated_.erase(known);
  }
}

std::optional<StayChange> PodBook::Settle(const std::string& uid, Record& record) {
  Nominate(uid, record);
  StayChange change{.before = record.counts, .after = Conclude(record)};
  if (change.before != nullptr && change.after != nullptr &&
      SameToResources(*change.before, *change.after)) {
    return std::nullopt;
  }
  record.counts = change.after;
  if (record.shown == nullptr) {
    records_.erase(uid);
  }
  return change.before != nullptr || change.after != nullptr ? std::optional(std::move(change))
                                                             : std::nullopt;
}

}  // namespace qrm::scheduler
