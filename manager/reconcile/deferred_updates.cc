// Compares the CPUs of each container in the kernel, in its record and in the runtime.
#include "manager/reconcile/deferred_updates.h"

#include <utility>

#include <fmt/format.h>

#include "manager/runtime/cgroup_cpusets.h"
#include "manager/runtime/run_options.h"
#include "manager/state/allocation_check.h"

namespace qrm::manager {

using checkpoint::ContainerRecord;
using checkpoint::NodeState;
using std::chrono::steady_clock;

namespace {

bool ChangesOnlyCpus(const PlannedUpdate& update) {
  return update.properties.size() == 1 && update.properties.contains(std::string(kCpusetCpus));
}

/// The CPUs that a container with `cpus` keeps until it may gain those of `due`: none that are
/// `owned` by others.
CpuSet WithoutGains(const CpuSet& cpus, const CpuSet& due, const CpuSet& owned) {
  if (CpuSet kept = cpus & due; !kept.Empty()) {
    return kept;
  }
  const CpuSet elsewhere = cpus - owned;
  return elsewhere.Empty() ? due : elsewhere;
}

}  // namespace

DeferredUpdates::DeferredUpdates(Parts parts, const DeferralOptions& options)
    : parts_(std::move(parts)), options_(options) {}

std::vector<PlannedUpdate> DeferredUpdates::TakeFrom(std::vector<PlannedUpdate> updates,
                                                     const NodeState& state,
                                                     const CpuSet& offline) {
  if (growing_.empty()) {
    growing_since_ = steady_clock::now();
  }
  growing_.clear();
  if (parts_.read && !updates.empty()) {
    const CpuSet out = OwnedCpus(state) | offline;
    std::erase_if(updates, [&](const PlannedUpdate& update) { return Defer(update, state, out); });
  }
  return updates;
}

bool DeferredUpdates::Defer(const PlannedUpdate& update, const NodeState& state,
                            const CpuSet& owned) {
  const auto& [key, id, properties, grows] = update;
  const ContainerRecord& record = *state.Find(key);
  if (!ChangesOnlyCpus(update) || !OwnedCpus(record.allocations).Empty()) {
    return false;
  }
  const CpuSet due = DueCpus(record, owned, {});
  const std::optional<DeferredCpus> deferred = parts_.live.FindDeferred(key, id);
  if (deferred.has_value() && (due.Empty() || deferred->cpus == due)) {
    return true;  // it has them, or others own all of them until it gets new CPUs
  }
  if (deferred.has_value() && !deferred->cpus.Empty() && deferred->cpus.IsSubsetOf(due)) {
    growing_.push_back({key, id, due});
    return true;
  }
  const std::optional<LiveContainer> container = parts_.live.Find(key);
  if (due.Empty() || !container.has_value() || container->cgroups_path.empty()) {
    return false;
  }
  const StatusOr<CgroupCpuset> has = parts_.read(container->cgroups_path);
  if (!has.ok()) {
    return false;
  }
  const CpuSet now = has->cpus.IsSubsetOf(due) ? has->cpus : WithoutGains(has->cpus, due, owned);
  parts_.live.Defer(key, id, now);
  if (now != has->cpus && !WriteCpus(*has, now).ok()) {
    return false;
  }
  if (now != due) {
    growing_.push_back({key, id, due});
  }
  return true;
}

bool DeferredUpdates::IsQuiet(std::chrono::milliseconds wanted) const {
  const auto quiet = parts_.live.QuietFor(steady_clock::now());
  return quiet > steady_clock::duration::zero() && quiet >= wanted;
}

bool DeferredUpdates::MayGrow() const {
  return !growing_.empty() && (IsQuiet(options_.quiet_for_growth) ||
                               steady_clock::now() - growing_since_ >= options_.growth_at_latest);
}

// An admission may have given some of these CPUs to an owner since TakeFrom.
std::vector<std::string> DeferredUpdates::Grow(const NodeState& state, const CpuSet& offline) {
  std::vector<std::string> problems;
  if (!MayGrow()) {
    return problems;
  }
  const CpuSet out = OwnedCpus(state) | offline;
  for (const auto& [key, id, cpus] : std::exchange(growing_, {})) {
    const CpuSet due = cpus - out;
    const std::optional<LiveContainer> container = parts_.live.Find(key);
    if (due.Empty() || !container.has_value() || container->id != id) {
      continue;
    }
    parts_.live.Defer(key, id, due);
    const StatusOr<CgroupCpuset> at = parts_.read(container->cgroups_path);
    if (const Status written = at.ok() ? WriteCpus(*at, due) : at.status(); !written.ok()) {
      parts_.live.DeferOther(key, id);
      problems.push_back(
          fmt::format("container {} of pod {}: cannot set CPUs {}: {}; the runtime gets an update",
                      key.container, key.pod_uid, ToString(due), MessageOf(written)));
    }
  }
  return problems;
}

std::optional<PlannedUpdate> DeferredUpdates::UpdateOf(const ContainerKey& key,
                                                       const NodeState& state,
                                                       const CpuSet& offline) const {
  std::vector<PlannedUpdate> updates;
  if (const std::optional<LiveContainer> container = parts_.live.Find(key); container.has_value()) {
    const std::optional<DeferredCpus> deferred = parts_.live.FindDeferred(key, container->id);
    const bool differs = deferred.has_value() && deferred->runtime_differs;
    updates = PlanUpdates(state, {{key, *container}}, offline,
                          differs ? std::set<ContainerKey>{key} : std::set<ContainerKey>());
  }
  if (updates.empty()) {
    return std::nullopt;
  }
  const auto cpus = updates.front().properties.find(std::string(kCpusetCpus));
  if (cpus != updates.front().properties.end()) {
    cpus->second = WithoutOffline(cpus->second, offline);
  }
  return std::move(updates.front());
}

std::size_t DeferredUpdates::Settle(const NodeState& state, const CpuSet& offline) {
  std::size_t left = 0;
  const std::set<ContainerKey> keys = parts_.live.DeferredKeys();
  const CpuSet owned = keys.empty() ? CpuSet() : OwnedCpus(state);
  for (const ContainerKey& key : keys) {
    const std::optional<LiveContainer> container = parts_.live.Find(key);
    const ContainerRecord* const record = state.Find(key);
    if (record == nullptr || !container.has_value() || !container->started) {
      continue;
    }
    const auto deferred = parts_.live.FindDeferred(key, container->id);
    if (!deferred.has_value()) {
      continue;
    }
    const bool is_back =
        deferred->sent.Empty() && deferred->cpus == DueCpus(*record, {}, offline) &&
        !deferred->cpus.Intersects(owned) && !UpdateOf(key, state, offline).has_value();
    if (is_back) {
      parts_.live.ClearDeferred(key, container->id);
    } else {
      ++left;
    }
  }
  return left;
}

void DeferredUpdates::Correct(const NodeState& state, const CpuSet& offline) {
  const auto now = steady_clock::now();
  if (!parts_.read || now - corrected_at_ < options_.look) {
    return;
  }
  corrected_at_ = now;
  const CpuSet out = OwnedCpus(state) | offline;
  for (const ContainerKey& key : parts_.live.DeferredKeys()) {
    const ContainerRecord* const record = state.Find(key);
    const std::optional<LiveContainer> container = parts_.live.Find(key);
    if (record == nullptr || !container.has_value() || !OwnedCpus(record->allocations).Empty()) {
      continue;
    }
    const CpuSet due = DueCpus(*record, out, {});
    const std::optional<DeferredCpus> deferred = parts_.live.FindDeferred(key, container->id);
    const StatusOr<CgroupCpuset> has = parts_.read(container->cgroups_path);
    if (due.Empty() || !has.ok() || !deferred.has_value()) {
      continue;
    }
    const CpuSet online = has->cpus - offline;
    const CpuSet kept = online.IsSubsetOf(due) ? online : WithoutGains(online, due, out);
    const bool is_ours = deferred->cpus.Empty() || deferred->cpus - offline == online;
    if (is_ours && kept == online) {
      continue;
    }
    if (!is_ours) {
      parts_.writes.Note({key, std::string(kCpusetCpus), ToString(has->cpus), ToString(due)});
    }
    parts_.live.Defer(key, container->id, kept);  // the next run adds the missing CPUs
    if (kept != online && !WriteCpus(*has, kept).ok()) {
      parts_.live.Defer(key, container->id, has->cpus);  // the next run updates by the runtime
    }
  }
}

std::optional<PlannedUpdate> DeferredUpdates::Next(const NodeState& state, const CpuSet& offline) {
  const auto now = steady_clock::now();
  if (now < not_before_) {
    return std::nullopt;
  }
  const bool is_quiet = IsQuiet(options_.quiet);
  std::optional<PlannedUpdate> next;
  auto longest = steady_clock::time_point::max();
  for (const ContainerKey& key : parts_.live.DeferredKeys()) {
    const std::optional<LiveContainer> container = parts_.live.Find(key);
    const auto deferred = container.has_value() ? parts_.live.FindDeferred(key, container->id)
                                                : std::optional<DeferredCpus>();
    if (!deferred.has_value() || deferred->since >= longest ||
        (!is_quiet && now - deferred->since < options_.at_latest)) {
      continue;
    }
    std::optional<PlannedUpdate> update = UpdateOf(key, state, offline);
    if (update.has_value() && deferred->cpus == DueCpus(*state.Find(key), {}, offline)) {
      longest = deferred->since;
      next = std::move(update);
    }
  }
  return next;
}

void DeferredUpdates::NoteRefusal() {
  not_before_ = steady_clock::now() + options_.after_refusal;
}

}  // namespace qrm::manager
