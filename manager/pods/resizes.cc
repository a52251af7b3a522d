// Finds the containers that may have changed, then compares one after another.
#include "manager/pods/resizes.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/log.h"
#include "manager/admission/admitter.h"
#include "manager/demand/demand_source.h"
#include "manager/drivers/driver_choice.h"
#include "manager/pods/pre_start.h"
#include "manager/reconcile/reconciler.h"
#include "manager/registry/plugins.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"
#include "plugins/placement/recorded_grants.h"

namespace qrm::manager {

using checkpoint::ContainerRecord;
using checkpoint::NodeState;
using checkpoint::PodRecord;

namespace {

/// Comparisons without an admission in one job: some hundred microseconds.
constexpr int kLooksPerJob = 64;

/// Nothing waits for the driver.
constexpr std::chrono::seconds kTellDeadline{5};

/// Whether the container was skipped: then its record has neither requests nor the pod's labels and
/// annotations.
bool WasLeftAlone(const placement::ContainerDemand& recorded) {
  const bool is_nobody = recorded.pod.labels.empty() && recorded.pod.annotations.empty();
  return recorded.requests.empty() && (recorded.source != kEstimate || is_nobody);
}

/// Whether plugins set values that kubelet sets too: then the runtime does not show kubelet's.
bool IsOverruled(const ContainerRecord& record) {
  return std::any_of(record.allocations.begin(), record.allocations.end(), [](const auto& entry) {
    const std::string& property = entry.second->oci_property;
    return !property.empty() && property != kCpusetCpus && property != kCpusetMems;
  });
}

double AmountIn(const std::map<std::string, double>& amounts, const char* name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? 0 : found->second;
}

/// Whether both have the same requests and limits that a runtime shows.
bool SameShown(const placement::ContainerDemand& a, const placement::ContainerDemand& b) {
  return AmountIn(a.requests, "cpu") == AmountIn(b.requests, "cpu") &&
         AmountIn(a.requests, "memory") == AmountIn(b.requests, "memory") &&
         AmountIn(a.limits, "cpu") == AmountIn(b.limits, "cpu");
}

}  // namespace

void Resizes::CompareAll() {
  if (parts_.stands_aside()) {
    compared_.reset();
    const MutexLock lock(mutex_);
    pending_.clear();
    return;
  }
  // Read first: the next comparison sees later changes.
  const uint64_t live = parts_.live.revision();
  const uint64_t specs = parts_.source.revision();
  Compared now{.state = parts_.state.Load(), .live = live, .specs = specs};
  AddChanged(now);
  compared_ = std::move(now);
  for (const auto& [driver, reviews] : reviews_) {
    if (reviews.is_due) {
      Review(driver);
    }
  }
  {
    const MutexLock lock(mutex_);
    std::erase_if(pending_,
                  [this](const auto& entry) { return !parts_.live.Find(entry.first).has_value(); });
  }
  RetryPending();
}

void Resizes::Compare(const ContainerKey& key) {
  due_.insert(key);
  Continue();
}

void Resizes::RetryPending() {
  if (retries_ == ResizeRetries::kOn) {
    AddPending();
  }
  Continue();
}

void Resizes::Review(const std::string& driver) {
  const std::optional<PluginInfo> plugin = parts_.plugins.Find(driver);
  if (!plugin.has_value() || !plugin->options.resizes) {
    return;
  }
  Reviews& reviews = reviews_[driver];
  const auto now = std::chrono::steady_clock::now();
  reviews.is_due = now - reviews.begun < kReviewPeriod;
  if (reviews.is_due) {
    return;
  }
  reviews.begun = now;
  parts_.state.Load()->ForEachPod([&](const PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      if (DriverOf(record->allocations) == driver) {
        reviewed_.emplace(ContainerKey{pod.meta.uid, name}, driver);
        due_.insert({pod.meta.uid, name});
      }
    }
  });
  Continue();
}

/// A driver that does not answer is not asked about its other containers: each would wait.
void Resizes::EndReview(const ContainerKey& key) {
  const ContainerRecord* const record = parts_.state.Load()->Find(key);
  const std::string driver = record == nullptr ? std::string() : DriverOf(record->allocations);
  std::erase_if(reviewed_, [&](const auto& entry) { return entry.second == driver; });
}

void Resizes::AddChanged(const Compared& now) {
  const auto add = [this](const PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      due_.insert({pod.meta.uid, name});
    }
  };
  const auto changed =
      compared_.has_value() ? parts_.live.ChangedSince(compared_->live) : std::nullopt;
  if (!changed.has_value() || compared_->specs != now.specs) {
    now.state->ForEachPod(add);
    return;
  }
  for (const SharedText& uid : now.state->PodsUnlike(*compared_->state)) {
    if (const PodRecord* const pod = now.state->FindPod(uid); pod != nullptr) {
      add(*pod);
    }
  }
  due_.insert(changed->begin(), changed->end());
}

/// Goes round: continues behind the pending container that was tried last.
void Resizes::AddPending() {
  const MutexLock lock(mutex_);
  auto next = last_retried_.has_value() ? pending_.upper_bound(*last_retried_) : pending_.begin();
  for (std::size_t i = 0; i < std::min(kRetries, pending_.size()); ++i) {
    if (next == pending_.end()) {
      next = pending_.begin();
    }
    last_retried_ = next->first;
    due_.insert(next->first);
    ++next;
  }
}

void Resizes::Continue() {
  if (due_.empty() || std::exchange(looking_, true)) {
    return;
  }
  parts_.state.Post([this] {
    for (int i = 0; i < kLooksPerJob && !due_.empty(); ++i) {
      const ContainerKey key = *due_.begin();
      due_.erase(due_.begin());
      if (Look(key)) {
        break;
      }
    }
    looking_ = false;
    Continue();
  });
}

/// True after an admission.
bool Resizes::Look(const ContainerKey& key) {
  const bool is_reviewed = reviewed_.erase(key) > 0;
  const auto state = parts_.state.Load();
  const ContainerRecord* const record = state->Find(key);
  const std::optional<LiveContainer> live = parts_.live.Find(key);
  if (record == nullptr || !live.has_value() || parts_.stands_aside()) {
    Forget(key);
    return false;
  }
  const std::optional<placement::ContainerDemand> demand = DemandNow(*state, key, *live);
  if (!demand.has_value()) {
    Forget(key);
    return false;
  }
  const Difference difference = parts_.admitter.Compare(*record, *demand);
  if (difference.asks) {
    if (!is_reviewed && IsHeldBack(key, *demand)) {
      return false;
    }
    Place(key, *demand, WhyPending(key).empty() ? Attempt::kFirst : Attempt::kAgain);
    return true;
  }
  if (difference.when_remade.empty()) {
    Forget(key);
  } else {
    NotePending(key, *demand,
                fmt::format("{} gets more of {} only when it is recreated; delete its pod",
                            NameOf(*demand), fmt::join(difference.when_remade, ", ")));
  }
  if (is_reviewed) {
    Place(key, *demand, Attempt::kReview);
  }
  return is_reviewed;
}

// If the spec agrees with the record but the runtime's list does not, the spec counts: after a
// restart, CRI-O shows the values that containers were created with.
std::optional<placement::ContainerDemand> Resizes::DemandNow(const NodeState& state,
                                                             const ContainerKey& key,
                                                             const LiveContainer& live) {
  const ContainerRecord& record = *state.Find(key);
  placement::ContainerDemand recorded =
      placement::RecordedDemand(state.FindPod(key.pod_uid)->meta, key.container, record);
  recorded.runtime_id = live.id;
  if (WasLeftAlone(recorded)) {
    return std::nullopt;
  }
  std::optional<placement::ContainerDemand> by_spec = parts_.source.FindNow(recorded);
  if (!by_spec.has_value() && recorded.source == kEstimate) {
    parts_.source.LookAgain(key.pod_uid);
  }
  placement::ContainerDemand demand = by_spec.value_or(recorded);
  demand.others.clear();
  demand.place = 0;
  if (IsOverruled(record)) {
    return demand;
  }
  placement::ContainerDemand shown = ResizedDemand(demand, WithShown({}, live.shown));
  if (by_spec.has_value() && !live.shown.by_event && SameShown(demand, recorded)) {
    if (!SameShown(shown, demand)) {
      parts_.source.LookAgain(key.pod_uid);
    }
    return demand;
  }
  return shown;
}

bool Resizes::IsHeldBack(const ContainerKey& key, const placement::ContainerDemand& demand) const {
  if (retries_ == ResizeRetries::kOn) {
    return false;
  }
  const MutexLock lock(mutex_);
  const auto pending = pending_.find(key);
  return pending != pending_.end() && pending->second.requests == demand.requests &&
         pending->second.limits == demand.limits;
}

void Resizes::Place(const ContainerKey& key, const placement::ContainerDemand& demand,
                    Attempt attempt) {
  const auto before = parts_.state.Load();
  const Status placed = admit_(demand, attempt);
  const ContainerRecord* const now = parts_.state.Load()->Find(key);
  if (now != before->Find(key)) {
    parts_.reconciler.TriggerChanges(key);
    PreStart::TellChange({.state = parts_.state, .plugins = parts_.plugins, .live = &parts_.live},
                         key, DeadlineAfter(kTellDeadline));
  }
  if (placed.code() == StatusCode::kDeadlineExceeded) {
    EndReview(key);
  }
  if (attempt == Attempt::kReview) {
    LogKept(MessageOf(placed));
  } else if (placed.ok()) {
    Forget(key);
  } else {
    NotePending(key, demand, MessageOf(placed));
  }
}

void Resizes::LogKept(const std::string& why) {
  if (why.empty()) {
    return;
  }
  if (const auto times = refused_lines_.Take(why, std::chrono::steady_clock::now());
      times.has_value()) {
    log::Warning("resized container keeps its allocations",
                 {{"error", why}, {"equal_ones_before", *times}});
  }
}

void Resizes::NotePending(const ContainerKey& key, const placement::ContainerDemand& demand,
                          std::string why) {
  LogKept(why);
  const MutexLock lock(mutex_);
  pending_[key] = {.why = std::move(why), .requests = demand.requests, .limits = demand.limits};
}

void Resizes::Forget(const ContainerKey& key) {
  const MutexLock lock(mutex_);
  pending_.erase(key);
}

PendingStatus Resizes::GetStatus() const {
  const MutexLock lock(mutex_);
  return pending_.empty() ? PendingStatus()
                          : PendingStatus{pending_.size(), pending_.begin()->second.why};
}

std::string Resizes::WhyPending(const ContainerKey& key) const {
  const MutexLock lock(mutex_);
  const auto pending = pending_.find(key);
  return pending == pending_.end() ? std::string() : pending->second.why;
}

}  // namespace qrm::manager
