// Tries each container in a separate job of the state loop.
#include "manager/pods/unplaced.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/log.h"
#include "manager/admission/admitter.h"
#include "manager/reconcile/reconciler.h"
#include "manager/registry/plugins.h"
#include "manager/runtime/cri/cri_client.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/allocation_check.h"
#include "manager/state/state_loop.h"
#include "plugins/placement/recorded_grants.h"
#include "topology/machine.h"

namespace qrm::manager {

using checkpoint::ContainerRecord;
using checkpoint::NodeState;

namespace {

/// Between two questions to a plugin that answered without an allocation.
constexpr std::chrono::seconds kFirstWait{1};
constexpr std::chrono::seconds kLongestWait{30};
constexpr char kNotTried[] = "qrmd has not placed it yet";

/// Whether the reconciler sets the CPUs of the container, even if another plugin rejected it.
bool HasCpus(const NodeState& state, const ContainerKey& key) {
  const ContainerRecord* const record = state.Find(key);
  return record != nullptr &&
         std::any_of(record->allocations.begin(), record->allocations.end(),
                     [](const auto& entry) { return entry.second->oci_property == kCpusetCpus; });
}

}  // namespace

placement::ContainerDemand WithoutPlaced(placement::ContainerDemand demand,
                                         const LiveContainers& live) {
  std::vector<placement::ContainerDemand> others;
  std::size_t place = 0;
  for (std::size_t i = 0; i < demand.others.size(); ++i) {
    placement::ContainerDemand& other = demand.others[i];
    const bool is_before = i < demand.place;
    const bool has_ended = is_before && other.type == ContainerType::kInit;
    if (!has_ended && !live.Find(other.key()).has_value()) {
      place += is_before ? 1 : 0;
      others.push_back(std::move(other));
    }
  }
  demand.has_all_others = others.size() == demand.others.size();
  demand.others = std::move(others);
  demand.place = place;
  return demand;
}

void Unplaced::Add(const RuntimePod& pod, const RuntimeContainer& container, std::string skipped) {
  const ContainerKey key = KeyOf(pod, container);
  containers_.insert_or_assign(key, std::pair(pod, container));
  moved_to_.erase(key);  // it may have any CPUs again
  UnplacedContainer shown{.key = key,
                          .pod_namespace = pod.pod_namespace,
                          .pod_name = pod.name,
                          .runtime_id = container.id,
                          .state = UnplacedState::kWaiting,
                          .why = kNotTried};
  const MutexLock lock(mutex_);
  if (!skipped.empty()) {
    shown.state = UnplacedState::kSkipped;
    shown.why = std::move(skipped);
  } else if (const auto known = shown_.find(key);
             known != shown_.end() && known->second.runtime_id == shown.runtime_id) {
    return;  // listed again
  }
  shown_.insert_or_assign(key, std::move(shown));
}

void Unplaced::Erase(const ContainerKey& key) {
  containers_.erase(key);
  incomplete_.erase(key);
  unanswered_.erase(key);
  refused_.erase(key);
  moved_to_.erase(key);
  const MutexLock lock(mutex_);
  shown_.erase(key);
}

std::vector<UnplacedContainer> Unplaced::List() const {
  const MutexLock lock(mutex_);
  std::vector<UnplacedContainer> list;
  list.reserve(shown_.size());
  for (const auto& [key, container] : shown_) {
    list.push_back(container);
  }
  return list;
}

std::optional<UnplacedContainer> Unplaced::Find(const ContainerKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = shown_.find(key);
  return found == shown_.end() ? std::nullopt : std::optional(found->second);
}

void Unplaced::EraseEnded() {
  std::erase_if(containers_,
                [this](const auto& entry) { return !IsLive(entry.first, entry.second.second); });
  std::erase_if(incomplete_,
                [this](const auto& key) { return !parts_.live.Find(key).has_value(); });
  const auto has_ended = [this](const ContainerKey& key) {
    return !containers_.contains(key) && !incomplete_.contains(key);
  };
  std::erase_if(unanswered_, [&](const auto& entry) { return has_ended(entry.first); });
  std::erase_if(refused_, has_ended);
  std::erase_if(moved_to_, [&](const auto& entry) { return has_ended(entry.first); });
  const MutexLock lock(mutex_);
  std::erase_if(shown_, [&](const auto& entry) { return has_ended(entry.first); });
}

void Unplaced::AddIncomplete(const std::string& resource) {
  const auto state = parts_.state.Load();
  state->ForEachPod([&](const checkpoint::PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      const ContainerKey key{pod.meta.uid, name};
      if (parts_.admitter.Lacks(*record, resource) && parts_.live.Find(key).has_value()) {
        incomplete_.insert(key);
      }
    }
  });
}

void Unplaced::AskAgain(const ContainerKey& key, const std::vector<std::string>& resources) {
  incomplete_.insert(key);
  Question& question = unanswered_[key];
  question.wait = std::clamp(2 * question.wait, kFirstWait, kLongestWait);
  question.next = DeadlineAfter(question.wait);
  refused_.erase(key);
  ShowTried(key, UnplacedState::kWaiting,
            fmt::format("{} answered without an allocation: qrmd asks again, at least every {} s; "
                        "if this lasts, see the log of the plugin",
                        fmt::join(resources, ", "), kLongestWait.count()));
}

void Unplaced::TryDue() {
  const auto now = std::chrono::steady_clock::now();
  std::vector<ContainerKey> due;
  for (const auto& [key, question] : unanswered_) {
    if (question.next <= now) {
      due.push_back(key);
    }
  }
  if (!due.empty()) {
    Try(std::move(due));
  }
}

void Unplaced::TryAll() {
  std::vector<ContainerKey> keys(incomplete_.begin(), incomplete_.end());
  std::erase_if(keys, [this](const ContainerKey& key) { return unanswered_.contains(key); });
  for (const auto& [key, entry] : containers_) {
    keys.push_back(key);
  }
  std::reverse(keys.begin(), keys.end());
  Try(std::move(keys));
}

void Unplaced::Try(std::vector<ContainerKey> keys) {
  if (AwaitsPlugins()) {
    LeaveOwnedCpus();
    return;  // all are tried when the last plugin registers, or the grace ends
  }
  while (!keys.empty() && !IsWaiting(keys.back())) {
    keys.pop_back();
  }
  if (keys.empty()) {
    LeaveOwnedCpus();
    return;
  }
  const ContainerKey key = std::move(keys.back());
  keys.pop_back();
  FindDemand(key, [this, key,
                   rest = std::move(keys)](StatusOr<placement::ContainerDemand> demand) mutable {
    parts_.state.Post([this, key, demand = std::move(demand), rest = std::move(rest)]() mutable {
      Place(key, demand);
      Try(std::move(rest));
    });
  });
}

bool Unplaced::AwaitsPlugins() const {
  if (std::chrono::steady_clock::now() >= grace_end_) {
    return false;
  }
  const std::vector<PluginInfo> plugins = parts_.plugins.List();
  return std::any_of(plugins.begin(), plugins.end(), [](const PluginInfo& plugin) {
    return plugin.registered_by == RegisteredBy::kCheckpoint;
  });
}

void Unplaced::FindDemand(const ContainerKey& key, DemandSource::Found found) {
  const auto entry = containers_.find(key);
  if (entry != containers_.end()) {
    auto& [pod, container] = entry->second;
    if (const auto live = parts_.live.Find(key); live.has_value()) {  // it may have been resized
      container.resources = WithShown(std::move(container.resources), live->shown);
    }
    parts_.source.Find(pod, container, DeadlineAfter(spec_deadline_), std::move(found));
    return;
  }
  const auto state = parts_.state.Load();
  placement::ContainerDemand demand = placement::RecordedDemand(state->FindPod(key.pod_uid)->meta,
                                                                key.container, *state->Find(key));
  demand.runtime_id = parts_.live.Find(key).value_or(LiveContainer()).id;
  found(std::move(demand));
}

bool Unplaced::IsLive(const ContainerKey& key, const RuntimeContainer& container) const {
  const std::optional<LiveContainer> live = parts_.live.Find(key);
  return live.has_value() && live->id == container.id;
}

// Forgets a container that is gone.
bool Unplaced::IsWaiting(const ContainerKey& key) {
  if (parts_.stands_aside()) {
    return false;
  }
  const auto found = containers_.find(key);
  const bool is_live = found != containers_.end()
                           ? IsLive(key, found->second.second)
                           : incomplete_.contains(key) && parts_.live.Find(key).has_value() &&
                                 parts_.state.Load()->Find(key) != nullptr;
  if (!is_live) {
    Erase(key);
  }
  return is_live;
}

void Unplaced::Place(const ContainerKey& key, const StatusOr<placement::ContainerDemand>& demand) {
  if (!IsWaiting(key)) {
    return;  // it ended while its spec was read
  }
  const auto before = parts_.state.Load();
  const StatusOr<std::vector<std::string>> placed =
      demand.ok() ? admit_(*demand) : StatusOr<std::vector<std::string>>(demand.status());
  if (!placed.ok()) {
    const std::string why = MessageOf(placed.status());
    if (const auto times = refused_lines_.Take(why, std::chrono::steady_clock::now());
        times.has_value()) {
      log::Warning("running container rejected", {{"error", why}, {"equal_ones_before", *times}});
    }
    refused_.insert(key);
    if (const auto question = unanswered_.find(key); question != unanswered_.end()) {
      question->second.next = DeadlineAfter(question->second.wait);
    }
    ShowTried(key, UnplacedState::kRejected, why);
    return;
  }
  const ContainerRecord* const record = parts_.state.Load()->Find(key);
  if (record == nullptr) {
    // No plugin serves it yet: a daemon that lost its checkpoint does not know them all.
    refused_.erase(key);
    ShowTried(key, UnplacedState::kSkipped, parts_.admitter.WhySkipped(*demand));
    return;
  }
  if (!placed->empty()) {
    containers_.erase(key);
    AskAgain(key, *placed);
    return;
  }
  const bool is_news = record != before->Find(key);
  Erase(key);
  if (is_news) {
    parts_.reconciler.Trigger();
  }
}

void Unplaced::ShowTried(const ContainerKey& key, UnplacedState state, std::string why) {
  UnplacedContainer shown{.key = key, .state = state, .why = std::move(why)};
  if (const auto found = containers_.find(key); found != containers_.end()) {
    shown.pod_namespace = found->second.first.pod_namespace;
    shown.pod_name = found->second.first.name;
    shown.runtime_id = found->second.second.id;
  } else if (const auto* pod = parts_.state.Load()->FindPod(key.pod_uid); pod != nullptr) {
    shown.pod_namespace = pod->meta.pod_namespace;
    shown.pod_name = pod->meta.name;
  }
  const MutexLock lock(mutex_);
  shown_.insert_or_assign(key, std::move(shown));
}

std::vector<ContainerKey> Unplaced::Keys() const {
  std::vector<ContainerKey> keys;
  keys.reserve(containers_.size());
  for (const auto& [key, container] : containers_) {
    keys.push_back(key);
  }
  return keys;
}

void Unplaced::LeaveOwnedCpus() {
  std::vector<ContainerKey> keys = Keys();
  for (const ContainerKey& key : refused_) {
    if (!containers_.contains(key)) {
      keys.push_back(key);
    }
  }
  if (keys.empty() || parts_.stands_aside()) {
    return;
  }
  const auto state = parts_.state.Load();
  const CpuSet owned = OwnedCpus(*state);
  const CpuSet free = parts_.machine.cpu_set() - owned - parts_.machine.OfflineNow();
  if (owned.Empty() || free.Empty()) {
    return;
  }
  const std::string to = ToString(free);
  for (const ContainerKey& key : keys) {
    const auto moved = moved_to_.find(key);
    const bool is_to_move = moved == moved_to_.end() ? MayUse(key, owned) : moved->second != to;
    if (is_to_move && !HasCpus(*state, key)) {
      MoveOff(key, to);
    }
  }
}

// A container stays on exclusive CPUs that it has from a lost admission.
bool Unplaced::MayUse(const ContainerKey& key, const CpuSet& owned) const {
  const auto entry = containers_.find(key);
  const CpuSet own =
      entry == containers_.end()
          ? CpuSet()
          : CpuSet::Parse(entry->second.second.resources.cpuset_cpus).value_or(CpuSet());
  return own.Empty() || own.Intersects(owned);
}

// Without an allocation, a container may run on all CPUs.
void Unplaced::MoveOff(const ContainerKey& key, const std::string& cpus) {
  const std::optional<LiveContainer> live = parts_.live.Find(key);
  if (!live.has_value() || !live->started) {
    return;
  }
  moved_to_[key] = cpus;
  LinuxResources resources;
  resources.cpuset_cpus = cpus;
  parts_.runtime.UpdateResources({live->id, resources}, [](const Status& moved) {
    if (!moved.ok()) {
      log::Warning("unpinned container may use exclusive CPUs of other containers",
                   {{"error", MessageOf(moved)}});
    }
  });
}

}  // namespace qrm::manager
