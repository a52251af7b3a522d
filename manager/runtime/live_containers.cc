// Keeps the table of live sandboxes and containers.
#include "manager/runtime/live_containers.h"

#include <algorithm>
#include <utility>

namespace qrm::manager {

using std::chrono::steady_clock;

namespace {

/// `news` over `before`. Stays `by_event` if `news` only repeats values of an event.
ShownValues Together(const ShownValues& before, const ShownValues& news) {
  ShownValues now = before;
  const auto take = [](auto& value, const auto& fresh) {
    if (fresh.has_value()) {
      value = fresh;
    }
  };
  take(now.cpu_shares, news.cpu_shares);
  take(now.cpu_quota_us, news.cpu_quota_us);
  take(now.cpu_period_us, news.cpu_period_us);
  take(now.memory_limit_bytes, news.memory_limit_bytes);
  now.by_event = news.by_event || (before.by_event && now == before);
  return now;
}

/// Enough for the pods that start and end in a period of the reconciler.
constexpr std::size_t kRememberedChanges = 1000;

}  // namespace

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
  std::map<std::string, std::set<std::string>> ids_by_uid;
  for (const auto& [uid, sandboxes] : pods_) {
    for (const auto& [id, sandbox] : sandboxes) {
      ids_by_uid[uid].insert(id);
    }
  }
  return ids_by_uid;
}

bool LiveContainers::HasContainerOf(const std::string& pod_uid) const {
  const MutexLock lock(mutex_);
  return HasContainerLocked(pod_uid);
}

bool LiveContainers::HasContainerLocked(const std::string& pod_uid) const {
  const auto first = containers_.lower_bound({pod_uid, ""});
  return first != containers_.end() && first->first.pod_uid == pod_uid;
}

std::set<std::string> LiveContainers::Listed() const {
  const MutexLock lock(mutex_);
  std::set<std::string> uids;
  for (const auto& [uid, sandboxes] : pods_) {
    for (const auto& [id, sandbox] : sandboxes) {
      if (sandbox.listed && !sandbox.stopped_at.has_value()) {
        uids.insert(uid);
      }
    }
  }
  return uids;
}

std::set<std::string> LiveContainers::EndedOnce(const std::string& pod_uid) const {
  const MutexLock lock(mutex_);
  std::set<std::string> names;
  for (auto next = ended_.lower_bound({pod_uid, ""});
       next != ended_.end() && next->first.pod_uid == pod_uid; ++next) {
    if (next->second == 0) {
      names.insert(next->first.container);
    }
  }
  return names;
}

bool LiveContainers::HasEndedAgain(const ContainerKey& key) const {
  const MutexLock lock(mutex_);
  const auto ended = ended_.find(key);
  return ended != ended_.end() && ended->second > 0;
}

uint64_t LiveContainers::revision() const {
  const MutexLock lock(mutex_);
  return revision_;
}

std::optional<std::set<ContainerKey>> LiveContainers::ChangedSince(uint64_t revision) const {
  const MutexLock lock(mutex_);
  const uint64_t count = revision_ - revision;
  if (count > changes_.size()) {
    return std::nullopt;
  }
  std::set<ContainerKey> changed;
  for (auto change = changes_.upper_bound(revision); change != changes_.end(); ++change) {
    changed.insert(change->second);
  }
  return changed;
}

void LiveContainers::NoteChange(const ContainerKey& key) {
  ++revision_;
  changes_.emplace_hint(changes_.end(), revision_, key);
  if (changes_.size() > kRememberedChanges) {
    changes_.erase(changes_.begin());
  }
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
  pods_[pod_uid][pod_id] = {};
  BeginStep({pod_uid, ""});
}

bool LiveContainers::RemovePod(const std::string& pod_uid, const std::string& pod_id) {
  const MutexLock lock(mutex_);
  const auto found = pods_.find(pod_uid);
  if (found == pods_.end()) {
    return false;
  }
  found->second.erase(pod_id);
  last_step_ = steady_clock::now();
  if (!found->second.empty()) {
    return true;
  }
  Forget(pod_uid);
  return false;
}

void LiveContainers::Forget(const std::string& pod_uid) {
  pods_.erase(pod_uid);
  under_way_.erase({pod_uid, ""});
  std::erase_if(ended_, [&](const auto& entry) { return entry.first.pod_uid == pod_uid; });
}

bool LiveContainers::MarkStopped(const std::string& pod_uid, const std::string& pod_id) {
  const MutexLock lock(mutex_);
  const auto pod = pods_.find(pod_uid);
  if (pod == pods_.end() || !pod->second.contains(pod_id)) {
    return false;
  }
  std::optional<steady_clock::time_point>& stopped_at = pod->second.at(pod_id).stopped_at;
  const bool is_news = !stopped_at.has_value();
  stopped_at = steady_clock::now();
  if (is_news && AllStopped(pod->second)) {
    EndStep({pod_uid, ""});
  }
  return is_news;
}

void LiveContainers::MarkReady(const std::string& pod_uid, const std::string& pod_id,
                               steady_clock::time_point asked_at) {
  const MutexLock lock(mutex_);
  const auto pod = pods_.find(pod_uid);
  if (pod == pods_.end() || !pod->second.contains(pod_id)) {
    return;
  }
  std::optional<steady_clock::time_point>& stopped_at = pod->second.at(pod_id).stopped_at;
  if (stopped_at < asked_at) {
    stopped_at.reset();
  }
}

bool LiveContainers::AllStopped(const Sandboxes& sandboxes) {
  return !sandboxes.empty() &&
         std::all_of(sandboxes.begin(), sandboxes.end(),
                     [](const auto& entry) { return entry.second.stopped_at.has_value(); });
}

bool LiveContainers::HasStopped(const std::string& pod_uid) const {
  const MutexLock lock(mutex_);
  const auto pod = pods_.find(pod_uid);
  return pod != pods_.end() && AllStopped(pod->second);
}

bool LiveContainers::RemoveEnded(const std::string& pod_uid) {
  const MutexLock lock(mutex_);
  const auto pod = pods_.find(pod_uid);
  if (pod == pods_.end() || !AllStopped(pod->second) || HasContainerLocked(pod_uid)) {
    return false;
  }
  Forget(pod_uid);
  return true;
}

bool LiveContainers::RemoveAllEnded() {
  const MutexLock lock(mutex_);
  std::vector<std::string> ended;
  for (const auto& [uid, sandboxes] : pods_) {
    if (AllStopped(sandboxes) && !HasContainerLocked(uid)) {
      ended.push_back(uid);
    }
  }
  for (const std::string& uid : ended) {
    Forget(uid);
  }
  return !ended.empty();
}

void LiveContainers::Add(const ContainerKey& key, LiveContainer container) {
  const MutexLock lock(mutex_);
  AddLocked(key, std::move(container));
}

void LiveContainers::AddUntold(const ContainerKey& key, LiveContainer container) {
  const MutexLock lock(mutex_);
  Sandboxes& sandboxes = pods_[key.pod_uid];
  sandboxes.try_emplace(container.pod_id, Sandbox{.only_cri = true}).first->second.listed = true;
  container.untold = true;
  AddLocked(key, std::move(container));
}

void LiveContainers::AddLocked(const ContainerKey& key, LiveContainer container) {
  pods_[key.pod_uid].try_emplace(container.pod_id);
  const auto same = containers_.find(key);
  if (same != containers_.end() && same->second.id != container.id) {
    container.attempt = std::max(container.attempt, same->second.attempt + 1);
    deferred_.erase(key);
  }
  if (const auto ended = ended_.find(key); ended != ended_.end()) {
    container.attempt = std::max(container.attempt, ended->second + 1);
    ended_.erase(ended);
  }
  EndStep({key.pod_uid, ""});
  if (!container.started) {
    BeginStep(key);
  }
  containers_[key] = std::move(container);
  NoteChange(key);
}

bool LiveContainers::MarkStarted(const ContainerKey& key, const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = containers_.find(key);
  if (found == containers_.end() || found->second.id != id || found->second.started) {
    return false;
  }
  found->second.started = true;
  EndStep(key);
  NoteChange(key);
  return true;
}

void LiveContainers::NoteShown(const ContainerKey& key, const std::string& id,
                               const ShownValues& shown) {
  const MutexLock lock(mutex_);
  const auto found = containers_.find(key);
  if (found == containers_.end() || found->second.id != id) {
    return;
  }
  const ShownValues now = Together(found->second.shown, shown);
  if (now != found->second.shown) {
    found->second.shown = now;
    NoteChange(key);
  }
}

void LiveContainers::Remove(const ContainerKey& key, const std::string& id) {
  const MutexLock lock(mutex_);
  const auto found = containers_.find(key);
  if (found == containers_.end() || found->second.id != id) {
    return;
  }
  if (found->second.started) {
    ended_[key] = found->second.attempt;
  }
  containers_.erase(found);
  deferred_.erase(key);
  EndStep(key);
  const auto pod = pods_.find(key.pod_uid);
  if (pod != pods_.end() && !AllStopped(pod->second) && !HasContainerLocked(key.pod_uid)) {
    BeginStep({key.pod_uid, ""});
  }
  NoteChange(key);
}

void LiveContainers::NoteEnded(const ContainerKey& key, uint32_t attempt) {
  const MutexLock lock(mutex_);
  if (!containers_.contains(key) && pods_.contains(key.pod_uid)) {
    uint32_t& latest = ended_.try_emplace(key, attempt).first->second;
    latest = std::max(latest, attempt);
  }
}

std::set<std::string> LiveContainers::UnknownToCri(const std::set<std::string>& ids) {
  const MutexLock lock(mutex_);
  std::set<std::string> unknown;
  for (const auto& [uid, sandboxes] : pods_) {
    for (const auto& [id, sandbox] : sandboxes) {
      cri_agrees_ = cri_agrees_ || (!sandbox.only_cri && ids.contains(id.str()));
      if (!sandbox.only_cri && !sandbox.stopped_at.has_value() && HasContainerLocked(uid)) {
        unknown.insert(uid.str());
      }
    }
  }
  return cri_agrees_ ? std::set<std::string>() : unknown;
}

bool LiveContainers::AwaitsCri() const {
  const MutexLock lock(mutex_);
  return !cri_agrees_ && !containers_.empty();
}

bool LiveContainers::KeepUntold(std::map<SharedText, Sandboxes, std::less<>>& pods,
                                std::map<ContainerKey, LiveContainer>& containers) const {
  bool kept_some = false;
  for (const auto& [uid, sandboxes] : pods_) {
    for (const auto& [id, sandbox] : sandboxes) {
      if (sandbox.stopped_at.has_value()) {
        continue;
      }
      if (sandbox.only_cri) {
        kept_some = pods[uid].try_emplace(id, sandbox).second || kept_some;
      }
      for (auto next = containers_.lower_bound({uid, ""});
           next != containers_.end() && next->first.pod_uid == uid; ++next) {
        const bool is_untold = sandbox.only_cri || next->second.untold;
        if (is_untold && next->second.pod_id == id && containers.insert(*next).second) {
          containers.at(next->first).untold = true;
          pods[uid].try_emplace(id, sandbox);
          kept_some = true;
        }
      }
    }
  }
  return kept_some;
}

bool LiveContainers::Reset(const std::map<SharedText, std::set<SharedText>>& pod_ids_by_uid,
                           std::map<ContainerKey, LiveContainer> containers,
                           const std::set<std::string>& kept, ListSource source) {
  const MutexLock lock(mutex_);
  std::map<SharedText, Sandboxes, std::less<>> pods;
  for (const std::string& uid : kept) {
    pods[uid] = pods_[uid];
  }
  for (const auto& [uid, ids] : pod_ids_by_uid) {
    for (const SharedText& id : ids) {
      const auto before = pods_.find(uid);
      const bool known = before != pods_.end() && before->second.contains(id);
      Sandbox& sandbox = pods[uid][id];
      sandbox = known ? before->second.at(id) : Sandbox{.only_cri = true};
      sandbox.listed = true;
      sandbox.only_cri = sandbox.only_cri && source == ListSource::kCri;
    }
  }
  for (auto& [key, container] : containers) {
    const auto before = containers_.find(key);
    if (before != containers_.end() && before->second.id == container.id) {
      container.shown = Together(before->second.shown, container.shown);
    }
  }
  const bool kept_some = source == ListSource::kNri && KeepUntold(pods, containers);
  for (const auto& [key, container] : containers_) {
    if (kept.contains(key.pod_uid)) {
      containers.emplace(key, container);
    } else if (container.started) {
      ended_[key] = container.attempt;  // unless it is listed
    }
  }
  std::erase_if(ended_, [&](const auto& entry) {
    return containers.contains(entry.first) || !pods.contains(entry.first.pod_uid);
  });
  pods_ = std::move(pods);
  containers_ = std::move(containers);
  std::erase_if(deferred_, [this](const auto& entry) QRM_REQUIRES(mutex_) {
    const auto found = containers_.find(entry.first);
    return found == containers_.end() || found->second.id != entry.second.id;
  });
  synchronized_ = true;
  under_way_.clear();
  if (source == ListSource::kNri) {  // a connection begins; the observer's lists show no steps
    last_step_ = steady_clock::now();
  }
  ++revision_;
  changes_.clear();
  return kept_some;
}

}  // namespace qrm::manager
