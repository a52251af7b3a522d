// Keeps the table of live sandboxes and containers.
#include "manager/runtime/live_containers.h"

#include <algorithm>
#include <utility>

namespace qrm::manager {

std::optional<LiveContainer> LiveContainers::Find(const ContainerKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = containers_.find(key);
  if (found == containers_.end()) {
    return std::nullopt;
  }
  return found->second;
}

bool LiveContainers::HasPod(const std::string& pod_uid) const {
  const MutexLock lock(mutex_);
  return pods_.contains(pod_uid);
}

bool LiveContainers::synchronized() const {
  const MutexLock lock(mutex_);
  return synchronized_;
}

std::map<ContainerKey, LiveContainer> LiveContainers::All() const {
  const MutexLock lock(mutex_);
  return containers_;
}

std::map<std::string, std::set<std::string>> LiveContainers::Pods() const {
  const MutexLock lock(mutex_);
  return pods_;
}

uint64_t LiveContainers::revision() const {
  const MutexLock lock(mutex_);
  return revision_;
}

std::vector<std::pair<ContainerKey, LiveContainer>> LiveContainers::After(const ContainerKey& key,
                                                                          std::size_t count) const {
  const MutexLock lock(mutex_);
  std::vector<std::pair<ContainerKey, LiveContainer>> some;
  auto next = containers_.upper_bound(key);
  while (some.size() < std::min(count, containers_.size())) {
    if (next == containers_.end()) {
      next = containers_.begin();
    }
    some.emplace_back(*next++);
  }
  return some;
}

void LiveContainers::AddPod(const std::string& pod_uid, const std::string& pod_id) {
  const MutexLock lock(mutex_);
  pods_[pod_uid].insert(pod_id);
}

bool LiveContainers::RemovePod(const std::string& pod_uid, const std::string& pod_id) {
  const MutexLock lock(mutex_);
  const auto found = pods_.find(pod_uid);
  if (found == pods_.end()) {
    return false;
  }
  found->second.erase(pod_id);
  if (!found->second.empty()) {
    return true;
  }
  pods_.erase(found);
  return false;
}

bool LiveContainers::RemoveEnded(const std::string& pod_uid, const std::set<std::string>& pod_ids) {
  const MutexLock lock(mutex_);
  const auto pod = pods_.find(pod_uid);
  const auto container = containers_.lower_bound({pod_uid, ""});
  if (pod == pods_.end() ||
      (container != containers_.end() && container->first.pod_uid == pod_uid) ||
      !std::includes(pod_ids.begin(), pod_ids.end(), pod->second.begin(), pod->second.end())) {
    return false;
  }
  pods_.erase(pod);
  return true;
}

void LiveContainers::Add(const ContainerKey& key, const LiveContainer& container) {
  const MutexLock lock(mutex_);
  pods_[key.pod_uid].insert(container.pod_id);
  containers_[key] = container;
  ++revision_;
}

void LiveContainers::MarkStarted(const ContainerKey& key, const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = containers_.find(key);
  if (found != containers_.end() && found->second.id == id) {
    found->second.started = true;
    ++revision_;
  }
}

void LiveContainers::Remove(const ContainerKey& key, const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = containers_.find(key);
  if (found != containers_.end() && found->second.id == id) {
    containers_.erase(found);
    ++revision_;
  }
}

void LiveContainers::Reset(std::map<std::string, std::set<std::string>> pod_ids_by_uid,
                           std::map<ContainerKey, LiveContainer> containers,
                           const std::set<std::string>& kept) {
  const MutexLock lock(mutex_);
  for (const std::string& uid : kept) {
    pod_ids_by_uid[uid].merge(pods_[uid]);
  }
  for (const auto& [key, container] : containers_) {
    if (kept.contains(key.pod_uid)) {
      containers.emplace(key, container);
    }
  }
  pods_ = std::move(pod_ids_by_uid);
  containers_ = std::move(containers);
  synchronized_ = true;
  ++revision_;
}

}  // namespace qrm::manager
