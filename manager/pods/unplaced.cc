// One attempt is one posting on the state loop.
#include "manager/pods/unplaced.h"

#include <algorithm>
#include <optional>

#include "api/base/log.h"

namespace qrm::manager {

StatusOr<ContainerDemand> FindDemand(DemandSource& source, const LiveContainers& live,
                                     const RuntimePod& pod, const RuntimeContainer& container,
                                     Deadline deadline) {
  StatusOr<ContainerDemand> demand = source.Find(pod, container, deadline);
  if (demand.ok()) {
    std::erase_if(demand->others,
                  [&](const ContainerDemand& other) { return live.Find(other.key()).has_value(); });
  }
  return demand;
}

Unplaced::Unplaced(Parts parts, std::chrono::milliseconds admission_deadline)
    : parts_(std::move(parts)), admission_deadline_(admission_deadline) {}

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
  if (keys.empty()) {
    return;
  }
  parts_.state.Post([this, keys = std::move(keys)]() mutable {
    Place(keys.back());
    keys.pop_back();
    Try(std::move(keys));
  });
}

bool Unplaced::IsLive(const ContainerKey& key, const RuntimeContainer& container) const {
  const std::optional<LiveContainer> live = parts_.live.Find(key);
  return live.has_value() && live->id == container.id;
}

void Unplaced::Place(const ContainerKey& key) {
  const auto found = containers_.find(key);
  if (found == containers_.end() || parts_.stands_aside()) {
    return;
  }
  const auto& [pod, container] = found->second;
  if (!IsLive(key, container)) {
    containers_.erase(found);
    return;
  }
  const Deadline deadline = DeadlineAfter(admission_deadline_);
  const StatusOr<ContainerDemand> demand =
      FindDemand(parts_.source, parts_.live, pod, container, deadline);
  const Status placed =
      demand.ok()
          ? parts_.admitter.Admit(*demand, Admitter::Moment::kAfterTheFact, deadline).status()
          : demand.status();
  if (!placed.ok()) {
    log::Warning("running container not placed", {{"error", MessageOf(placed)}});
    return;
  }
  if (parts_.state.Load()->Find(key) == nullptr) {
    return;  // no plugin serves it yet: a daemon that lost its state does not know them all
  }
  containers_.erase(found);
  parts_.reconcile_soon();
}

}  // namespace qrm::manager
