// Tries each container in a job of its own on the state loop.
#include "manager/pods/unplaced.h"

#include <algorithm>
#include <optional>

#include "api/base/log.h"

namespace qrm::manager {

ContainerDemand WithoutLive(ContainerDemand demand, const LiveContainers& live) {
  std::erase_if(demand.others,
                [&](const ContainerDemand& other) { return live.Find(other.key()).has_value(); });
  return demand;
}

void Unplaced::Add(const RuntimePod& pod, const RuntimeContainer& container) {
  containers_.insert_or_assign(KeyOf(pod, container), std::pair(pod, container));
}

void Unplaced::EraseEnded() {
  std::erase_if(containers_,
                [this](const auto& entry) { return !IsLive(entry.first, entry.second.second); });
}

void Unplaced::TryAll() {
  std::vector<ContainerKey> keys;
  keys.reserve(containers_.size());
  for (const auto& [key, entry] : containers_) {
    keys.push_back(key);
  }
  std::reverse(keys.begin(), keys.end());
  Try(std::move(keys));
}

void Unplaced::Try(std::vector<ContainerKey> keys) {
  while (!keys.empty() && Waiting(keys.back()) == nullptr) {
    keys.pop_back();
  }
  if (keys.empty()) {
    return;
  }
  const ContainerKey key = std::move(keys.back());
  keys.pop_back();
  const auto& [pod, container] = containers_.at(key);
  parts_.source.Find(pod, container, DeadlineAfter(admission_deadline_),
                     [this, key, rest = std::move(keys)](StatusOr<ContainerDemand> demand) mutable {
                       parts_.state.Post([this, key, demand = std::move(demand),
                                          rest = std::move(rest)]() mutable {
                         Place(key, demand);
                         Try(std::move(rest));
                       });
                     });
}

bool Unplaced::IsLive(const ContainerKey& key, const RuntimeContainer& container) const {
  const std::optional<LiveContainer> live = parts_.live.Find(key);
  return live.has_value() && live->id == container.id;
}

const PodAndContainer* Unplaced::Waiting(const ContainerKey& key) {
  const auto found = containers_.find(key);
  if (found == containers_.end() || parts_.stands_aside()) {
    return nullptr;
  }
  if (!IsLive(key, found->second.second)) {
    containers_.erase(found);
    return nullptr;
  }
  return &found->second;
}

void Unplaced::Place(const ContainerKey& key, const StatusOr<ContainerDemand>& demand) {
  if (Waiting(key) == nullptr) {
    return;  // its spec took a while
  }
  const Deadline deadline = DeadlineAfter(admission_deadline_);
  const Status placed = demand.ok() ? parts_.admitter
                                          .Admit(WithoutLive(*demand, parts_.live),
                                                 Admitter::Moment::kAfterTheFact, deadline)
                                          .status()
                                    : demand.status();
  if (!placed.ok()) {
    log::Warning("running container not placed", {{"error", MessageOf(placed)}});
    return;
  }
  if (parts_.state.Load()->Find(key) == nullptr) {
    return;  // no plugin serves it yet: a daemon that lost its state does not know them all
  }
  containers_.erase(key);
  parts_.reconciler.Trigger();
}

}  // namespace qrm::manager
