// Checks a slice of the live containers for drift in each run.
#include "manager/reconcile/drift.h"

#include <optional>
#include <utility>

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/base/log.h"
#include "manager/reconcile/plan.h"
#include "manager/state/allocation_check.h"

namespace qrm::manager {
namespace {

using checkpoint::Change;
using checkpoint::ContainerRecord;
using checkpoint::NodeState;

/// Adds the text of `actual` to `drift` if `applied` has a list under `property` that differs from
/// it in more than `ignored`.
template <typename Set>
void AddIfDifferent(const StringMap& applied, std::string_view property, const Set& actual,
                    StringMap& drift, const Set& ignored = {}) {
  const auto ours = applied.find(std::string(property));
  if (ours == applied.end()) {
    return;
  }
  const StatusOr<Set> wanted = Set::Parse(ours->second);
  if (wanted.ok() && *wanted - ignored != actual - ignored) {
    drift.emplace(property, ToString(actual));
  }
}

}  // namespace

StringMap DriftOf(const StringMap& applied, const CgroupCpuset& actual, const CpuSet& offline) {
  StringMap drift;
  AddIfDifferent(applied, kCpusetCpus, actual.cpus, drift, offline);
  AddIfDifferent(applied, kCpusetMems, actual.mems, drift);
  return drift;
}

bool HasItsCpus(const ContainerRecord& record, const CpuSet& actual, const CpuSet& offline) {
  const CpuSet due = DueCpus(record, {}, {});
  return due.Empty() || ((actual - offline).IsSubsetOf(due) &&
                         (OwnedCpus(record.allocations) - offline).IsSubsetOf(actual));
}

DriftCheck::DriftCheck(Parts parts, std::size_t per_run)
    : parts_(std::move(parts)), per_run_(per_run) {}

StringMap DriftCheck::DriftOfAll(const std::string& cgroups_path, const StringMap& applied,
                                 const CgroupCpuset& actual, const CpuSet& offline) const {
  StringMap drift = DriftOf(applied, actual, offline);
  if (parts_.read_limits != nullptr) {
    drift.merge(parts_.read_limits(cgroups_path, applied));
  }
  return drift;
}

StringMap DriftCheck::DriftOfOne(const ContainerKey& key, const LiveContainer& container,
                                 const NodeState& state, const CpuSet& owned,
                                 const CpuSet& offline) const {
  const ContainerRecord* record = container.started ? state.Find(key) : nullptr;
  if (record == nullptr || container.cgroups_path.empty()) {
    return {};
  }
  const StatusOr<CgroupCpuset> actual = parts_.read(container.cgroups_path);
  StringMap drift = actual.ok() ? DriftOfAll(container.cgroups_path,
                                             record->AppliedTo(container.id), *actual, offline)
                                : StringMap();
  if (drift.contains(std::string(kCpusetCpus)) &&
      (parts_.live.FindDeferred(key, container.id).has_value() ||
       actual->cpus - offline ==
           DueCpus(*record, owned - OwnedCpus(record->allocations), offline))) {
    drift.erase(std::string(kCpusetCpus));
  }
  return drift;
}

bool DriftCheck::IsForeign(const std::string& property, const std::string& theirs,
                           const std::string& ours) const {
  const StatusOr<CpuSet> now = CpuSet::Parse(theirs);
  const StatusOr<CpuSet> then = CpuSet::Parse(ours);
  return !is_first_round_ || property != kCpusetCpus || !now.ok() || !then.ok() ||
         !now->IsSubsetOf(*then);
}

Change DriftCheck::Find(const NodeState& state, const CpuSet& offline) {
  Change change;
  if (parts_.read == nullptr) {
    return change;
  }
  const CpuSet owned = OwnedCpus(state);
  const auto some = parts_.live.After(last_, per_run_);
  for (const auto& [key, container] : some) {
    const StringMap drift = DriftOfOne(key, container, state, owned, offline);
    if (!drift.empty()) {
      Change::PutContainer put{state.FindPod(key.pod_uid)->meta, key.container, *state.Find(key)};
      for (const auto& [property, theirs] : drift) {
        const std::string& ours = put.record.applied.at(property);
        if (IsForeign(property, theirs, ours)) {
          parts_.writes.Note({key, property, theirs, ours});
        }
        put.record.applied.Edit().erase(property);
      }
      change.put_containers.push_back(std::move(put));
    }
  }
  if (!some.empty()) {
    is_first_round_ = is_first_round_ && some.size() == per_run_ && some.back().first > last_;
    last_ = some.back().first;
  }
  return change;
}

std::string DriftCheck::ReadBack(const ContainerKey& key, const StringMap& properties,
                                 const CpuSet& offline) const {
  const std::optional<LiveContainer> container = parts_.live.Find(key);
  if (parts_.read == nullptr || !container.has_value() || container->cgroups_path.empty()) {
    return {};
  }
  const StatusOr<CgroupCpuset> actual = parts_.read(container->cgroups_path);
  const StringMap drift =
      actual.ok() ? DriftOfAll(container->cgroups_path, properties, *actual, offline) : StringMap();
  if (drift.empty()) {
    return {};
  }
  return fmt::format(
      "cannot change container {} of pod {}: the runtime accepted {}, but the kernel has {}; stop "
      "the other NRI plugin or process that sets it",
      key.container, key.pod_uid, fmt::join(properties, " "), fmt::join(drift, " "));
}

namespace {

/// The kernel's counters of a cgroup lack what each CPU has counted but not flushed yet.
constexpr uint64_t kInexact = 1 << 20;

/// The part of `bytes` on nodes outside `nodes`.
std::map<int, uint64_t> Elsewhere(std::map<int, uint64_t> bytes, const NumaMask& nodes) {
  std::erase_if(bytes, [&nodes](const auto& of_node) {
    return nodes.Has(of_node.first) || of_node.second <= kInexact;
  });
  return bytes;
}

std::string StillThere(const ContainerKey& key, const std::map<int, uint64_t>& elsewhere,
                       const NumaMask& nodes) {
  NumaMask others;
  uint64_t bytes = 0;
  for (const auto& [node, count] : elsewhere) {
    others.Add(node);
    bytes += count;
  }
  return fmt::format(
      "{} bytes of container {} of pod {} are still on NUMA nodes {} instead of {}: the kernel did "
      "not move them (cgroup v1 moves memory only if cpuset.memory_migrate is 1); restart the "
      "container, or wait until it frees them",
      bytes, key.container, key.pod_uid, ToString(others), ToString(nodes));
}

}  // namespace

MovedMemory::MovedMemory(MemorySource read, const LiveContainers& live)
    : read_(std::move(read)), live_(live) {}

void MovedMemory::Note(const PlannedUpdate& update) {
  const auto mems = update.properties.find(std::string(kCpusetMems));
  if (read_ == nullptr || mems == update.properties.end()) {
    return;
  }
  if (const StatusOr<NumaMask> nodes = NumaMask::Parse(mems->second); nodes.ok()) {
    moved_[update.key] = {.id = update.container_id, .nodes = *nodes};
  }
}

std::vector<std::string> MovedMemory::Look() {
  std::map<ContainerKey, Moved> waiting;
  std::vector<std::string> problems;
  for (auto& [key, moved] : moved_) {
    const std::optional<LiveContainer> container = live_.Find(key);
    if (!container.has_value() || container->id != moved.id || container->cgroups_path.empty()) {
      continue;
    }
    StatusOr<std::map<int, uint64_t>> bytes = read_(container->cgroups_path);
    if (!bytes.ok()) {
      continue;
    }
    if (const auto elsewhere = Elsewhere(*std::move(bytes), moved.nodes); !elsewhere.empty()) {
      problems.push_back(StillThere(key, elsewhere, moved.nodes));
      if (++moved.looks < kMostLooks) {
        waiting.emplace(key, std::move(moved));
      }
      continue;
    }
    log::Info(
        "memory moved to the container's NUMA nodes",
        {{"pod", key.pod_uid}, {"container", key.container}, {"nodes", ToString(moved.nodes)}});
  }
  moved_ = std::move(waiting);
  return problems;
}

}  // namespace qrm::manager
