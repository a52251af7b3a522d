// A map of specs behind a mutex; the specs themselves never change.
#include "manager/demand/spec_cache.h"

#include <algorithm>
#include <utility>

namespace qrm::manager {

PodSpecPtr SpecCache::Find(const std::string& uid) const {
  const MutexLock lock(mutex_);
  const auto found = specs_.find(uid);
  return found == specs_.end() ? nullptr : found->second;
}

PodSpecPtr SpecCache::FindMirror(const std::string& static_uid, const std::string& pod_namespace,
                                 const std::string& name) const {
  const MutexLock lock(mutex_);
  const auto mirror = uid_of_mirror_.find({static_uid, pod_namespace, name});
  return mirror == uid_of_mirror_.end() ? nullptr : specs_.at(mirror->second);
}

std::size_t SpecCache::size() const {
  const MutexLock lock(mutex_);
  return specs_.size();
}

uint64_t SpecCache::revision() const {
  const MutexLock lock(mutex_);
  return revision_;
}

bool SpecCache::Put(PodSpec spec) {
  const MutexLock lock(mutex_);
  if (const auto known = specs_.find(spec.uid); known != specs_.end() && *known->second == spec) {
    not_told_again_.erase(spec.uid);
    return true;
  }
  RemoveLocked(spec.uid);
  if (specs_.size() >= kMaxPods) {
    return false;
  }
  ++revision_;
  if (!spec.static_uid.empty()) {
    uid_of_mirror_[{spec.static_uid, spec.pod_namespace, spec.name}] = spec.uid;
  }
  std::string uid = spec.uid;
  specs_[std::move(uid)] = std::make_shared<const PodSpec>(std::move(spec));
  return true;
}

void SpecCache::Remove(const std::string& uid) {
  {
    const MutexLock lock(mutex_);
    RemoveLocked(uid);
  }
  on_gone_(uid);
}

void SpecCache::RemoveLocked(const std::string& uid) {
  not_told_again_.erase(uid);
  const auto found = specs_.find(uid);
  if (found == specs_.end()) {
    return;
  }
  ++revision_;
  const PodSpec& spec = *found->second;
  const auto mirror = uid_of_mirror_.find({spec.static_uid, spec.pod_namespace, spec.name});
  if (mirror != uid_of_mirror_.end() && mirror->second == uid) {
    uid_of_mirror_.erase(mirror);
  }
  specs_.erase(found);
}

void SpecCache::Replace(std::vector<PodSpec> specs) {
  BeginSync();
  for (PodSpec& spec : specs) {
    if (!Put(std::move(spec))) {
      break;
    }
  }
  EndSync();
}

void SpecCache::BeginSync() {
  const MutexLock lock(mutex_);
  for (const auto& [uid, spec] : specs_) {
    not_told_again_.insert(uid);
  }
}

void SpecCache::EndSync() {
  std::set<std::string> gone;
  {
    const MutexLock lock(mutex_);
    gone.swap(not_told_again_);
    for (const std::string& uid : gone) {
      RemoveLocked(uid);
    }
  }
  std::for_each(gone.begin(), gone.end(), on_gone_);
}

bool SpecCache::BeginLookup(const std::string& uid) {
  const MutexLock lock(mutex_);
  return looked_for_.insert(uid).second;
}

void SpecCache::EndLookup(const std::string& uid) {
  {
    const MutexLock lock(mutex_);
    looked_for_.erase(uid);
  }
  RunEnded();
}

void SpecCache::SetSettled() {
  {
    const MutexLock lock(mutex_);
    settled_ = true;
  }
  RunEnded();
}

bool SpecCache::IsLookedFor(const std::string& uid) const {
  return !settled_ || looked_for_.contains(uid);
}

void SpecCache::AfterLooking(const std::string& uid, Deadline deadline,
                             std::function<void()> done) {
  {
    const MutexLock lock(mutex_);
    if (IsLookedFor(uid)) {
      const Deadline now = DeadlineAfter({});
      std::erase_if(waiters_, [now](const Waiter& waiter) { return waiter.deadline < now; });
      waiters_.push_back({uid, deadline, std::move(done)});
      return;
    }
  }
  done();
}

void SpecCache::RunEnded() {
  std::vector<Waiter> ended;
  {
    const MutexLock lock(mutex_);
    std::vector<Waiter> waiting;
    for (Waiter& waiter : waiters_) {
      (IsLookedFor(waiter.uid) ? waiting : ended).push_back(std::move(waiter));
    }
    waiters_ = std::move(waiting);
  }
  for (const Waiter& waiter : ended) {
    waiter.done();
  }
}

}  // namespace qrm::manager
