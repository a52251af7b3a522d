// Keeps the CPUs that the runtime has to take later, and since when it has been idle.
#include <algorithm>

#include "manager/runtime/live_containers.h"

namespace qrm::manager {

using std::chrono::steady_clock;

void LiveContainers::BeginStep(const ContainerKey& key) {
  last_step_ = steady_clock::now();
  under_way_[key] = last_step_;
}

void LiveContainers::EndStep(const ContainerKey& key) {
  last_step_ = steady_clock::now();
  under_way_.erase(key);
}

steady_clock::duration LiveContainers::QuietFor(steady_clock::time_point now) const {
  const MutexLock lock(mutex_);
  const bool under_way =
      std::any_of(under_way_.begin(), under_way_.end(),
                  [now](const auto& entry) { return now - entry.second < kLongestStep; });
  return under_way ? steady_clock::duration::zero() : now - last_step_;
}

DeferredCpus* LiveContainers::FindLocked(const ContainerKey& key, const std::string& id) {
  const auto found = deferred_.find(key);
  return found == deferred_.end() || found->second.id != id ? nullptr : &found->second;
}

void LiveContainers::Defer(const ContainerKey& key, const std::string& id, const CpuSet& cpus) {
  const MutexLock lock(mutex_);
  const auto found = containers_.find(key);
  if (found != containers_.end() && found->second.id == id) {
    DeferredCpus& deferred = deferred_[key];
    if (deferred.id != id) {
      deferred = {.id = id, .since = steady_clock::now()};
    }
    deferred.cpus = cpus;
  }
}

void LiveContainers::DeferOther(const ContainerKey& key, const std::string& id) {
  if (!FindDeferred(key, id).has_value()) {
    Defer(key, id, {});
  }
  const MutexLock lock(mutex_);
  if (DeferredCpus* const deferred = FindLocked(key, id); deferred != nullptr) {
    deferred->runtime_differs = true;
  }
}

bool LiveContainers::BeginTelling(const ContainerKey& key, const std::string& id,
                                  const CpuSet& cpus) {
  const MutexLock lock(mutex_);
  DeferredCpus* const deferred = FindLocked(key, id);
  if (deferred == nullptr || deferred->cpus != cpus) {
    return false;
  }
  deferred->sent = cpus;
  deferred->runtime_differs = false;
  return true;
}

bool LiveContainers::NoteTold(const ContainerKey& key, const std::string& id, const CpuSet& cpus) {
  const MutexLock lock(mutex_);
  DeferredCpus* const deferred = FindLocked(key, id);
  if (deferred == nullptr || deferred->sent.Empty()) {
    return false;
  }
  deferred->told = cpus;
  return true;
}

void LiveContainers::EndTelling(const ContainerKey& key, const std::string& id, bool taken) {
  const MutexLock lock(mutex_);
  DeferredCpus* const deferred = FindLocked(key, id);
  if (deferred == nullptr || deferred->sent.Empty()) {
    return;
  }
  if (taken && deferred->cpus == deferred->sent && !deferred->runtime_differs) {
    deferred_.erase(key);
  } else {
    deferred->sent = {};
    deferred->told = {};
    deferred->runtime_differs = true;
  }
}

void LiveContainers::ClearDeferred(const ContainerKey& key, const std::string& id) {
  const MutexLock lock(mutex_);
  if (FindLocked(key, id) != nullptr) {
    deferred_.erase(key);
  }
}

std::optional<DeferredCpus> LiveContainers::FindDeferred(const ContainerKey& key,
                                                         const std::string& id) const {
  const MutexLock lock(mutex_);
  const auto found = deferred_.find(key);
  return found == deferred_.end() || found->second.id != id ? std::nullopt
                                                            : std::optional(found->second);
}

std::set<ContainerKey> LiveContainers::DeferredKeys() const {
  const MutexLock lock(mutex_);
  std::set<ContainerKey> keys;
  for (const auto& [key, deferred] : deferred_) {
    keys.insert(keys.end(), key);
  }
  return keys;
}

std::map<ContainerKey, DeferredCpus> LiveContainers::DeferredWith(const CpuSet& cpus) const {
  const MutexLock lock(mutex_);
  std::map<ContainerKey, DeferredCpus> with;
  for (const auto& [key, deferred] : deferred_) {
    if (deferred.cpus.Intersects(cpus) || deferred.told.Intersects(cpus)) {
      with.emplace(key, deferred);
    }
  }
  return with;
}

}  // namespace qrm::manager
