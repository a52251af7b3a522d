// Reads and writes cpuset.cpus.
#include "manager/pods/hand_over.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "api/base/clock.h"
#include "api/base/errorf.h"
#include "api/base/log.h"
#include "checkpoint/holdings.h"
#include "manager/runtime/cgroup_cpusets.h"
#include "manager/state/allocation_check.h"

namespace qrm::manager {

void UpdatesUnderWay::Note(const ContainerKey& key, CpuSet cpus) {
  const auto now = std::chrono::steady_clock::now();
  const MutexLock lock(mutex_);
  std::erase_if(updates_,
                [now](const auto& entry) { return now - entry.second.told_at > kLongest; });
  updates_.insert_or_assign(key, Update{std::move(cpus), now});
}

std::map<ContainerKey, UpdatesUnderWay::Update> UpdatesUnderWay::With(const CpuSet& cpus) const {
  const auto now = std::chrono::steady_clock::now();
  std::map<ContainerKey, Update> with;
  const MutexLock lock(mutex_);
  for (const auto& [key, update] : updates_) {
    if (now - update.told_at <= kLongest && update.cpus.Intersects(cpus)) {
      with.emplace(key, update);
    }
  }
  return with;
}

void UpdatesUnderWay::Forget(const ContainerKey& key) {
  const MutexLock lock(mutex_);
  updates_.erase(key);
}

namespace {

using checkpoint::ContainerRecord;

/// The time that runc takes for an update on a busy node.
constexpr std::chrono::milliseconds kLongestUpdate{200};
constexpr std::chrono::milliseconds kLookPeriod{1};

/// True for the container itself, and for containers that by their admissions' checks run in turn
/// with it.
bool OwnsSomeOf(const ContainerRecord& record, const CpuSet& cpus) {
  return OwnedCpus(record.allocations).Intersects(cpus);
}

/// Whether a list may have some of a set of CPUs; an empty one may. Most containers have the same
/// list as another container: each list is parsed once.
class MayBeAmong {
 public:
  explicit MayBeAmong(const CpuSet& cpus) : cpus_(cpus) {}

  bool operator()(const std::string& list) {
    const auto known = known_.find(list);
    return known != known_.end() ? known->second : known_.emplace(list, Read(list)).first->second;
  }

 private:
  bool Read(const std::string& list) const {
    const StatusOr<CpuSet> parsed = CpuSet::Parse(list);
    return !parsed.ok() || parsed->Empty() || parsed->Intersects(cpus_);
  }

  const CpuSet& cpus_;
  std::unordered_map<std::string, bool> known_;
};

/// Whether the cgroup of the container may have some of the CPUs.
bool MayHave(const ContainerRecord& record, MayBeAmong& among) {
  const std::set<std::string> lists = checkpoint::CpuListsOf(record);
  return std::any_of(lists.begin(), lists.end(),
                     [&](const std::string& list) { return among(list); });
}

/// Whether containers that own none of `cpus` may have some. Cost: O(different lists + owners).
bool OthersMayHave(const checkpoint::NodeState& state, const CpuSet& cpus, MayBeAmong& among) {
  std::size_t containers = 0;
  for (const auto& [list, having] : state.cpu_lists()) {
    containers += among(list) ? having : 0;
  }
  state.ForEachCpuOwner([&](const checkpoint::PodRecord& pod) {
    for (const auto& [name, record] : pod.containers) {
      if (OwnsSomeOf(*record, cpus)) {
        for (const std::string& list : checkpoint::CpuListsOf(*record)) {
          containers -= among(list) ? 1 : 0;
        }
      }
    }
  });
  return containers > 0;
}

/// All CPUs that are not exclusive.
CpuSet FreeForAll(const NodeCpusets& node) {
  return node.machine.cpu_set() - OwnedCpus(node.state) - node.machine.OfflineNow();
}

Status Leave(const ContainerKey& key, const CpuSet& cpus, const NodeCpusets& node) {
  const std::optional<LiveContainer> container = node.live.Find(key);
  if (!container.has_value() || container->cgroups_path.empty()) {
    return OkStatus();
  }
  const StatusOr<CgroupCpuset> has = node.read(container->cgroups_path);
  if (!has.ok() || !has->cpus.Intersects(cpus)) {
    return OkStatus();  // it is gone, or has other CPUs
  }
  const CpuSet rest = has->cpus - cpus;
  const CpuSet left = rest.Empty() ? FreeForAll(node) : rest;
  if (left.Empty()) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "container {} of pod {} runs on CPUs {}, but all CPUs are exclusive to other "
                  "containers; delete its pod",
                  key.container, key.pod_uid, ToString(has->cpus));
  }
  node.live.Defer(key, container->id, left);  // before the write: an update in between is seen
  if (const Status written = WriteCpus(*has, left); !written.ok()) {
    node.live.Defer(key, container->id, has->cpus);
    return Annotate(written, fmt::format("container {} of pod {} does not leave CPUs {}",
                                         key.container, key.pod_uid, ToString(has->cpus & cpus)));
  }
  return OkStatus();
}

/// Waits until the runtime has written its update to the container's cgroup; false when it has not
/// by `deadline`.
bool AwaitWrite(const ContainerKey& key, const CpuSet& told, const NodeCpusets& node,
                Deadline deadline) {
  const std::optional<LiveContainer> container = node.live.Find(key);
  if (!container.has_value() || container->cgroups_path.empty()) {
    return true;  // it is gone
  }
  while (true) {
    const StatusOr<CgroupCpuset> has = node.read(container->cgroups_path);
    if (!has.ok() || has->cpus == told) {
      return true;
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return false;
    }
    std::this_thread::sleep_for(kLookPeriod);  // the kernel has no event for it
  }
}

void WarnOfSlowUpdate(const ContainerKey& key, const CpuSet& told) {
  log::Warning(
      "a container may briefly get exclusive CPUs of another container: the runtime has not "
      "written its update yet; the container leaves these CPUs before their owner starts",
      {{"pod", key.pod_uid}, {"container", key.container}, {"told", ToString(told)}});
}

bool IsAnOwner(const ContainerKey& key, const ContainerKey& owner, const CpuSet& cpus,
               const NodeCpusets& node) {
  const ContainerRecord* record = node.state.Find(key);
  return key == owner || (record != nullptr && OwnsSomeOf(*record, cpus));
}

/// Containers with updates under way leave `cpus`, which `owner` has, as soon as they get them.
Status LeaveAfterUpdates(const ContainerKey& owner, const CpuSet& cpus, const NodeCpusets& node) {
  for (const auto& [key, update] : node.updates.With(cpus)) {
    if (IsAnOwner(key, owner, cpus, node)) {
      continue;
    }
    // An older one may have been written, and the CPUs changed since.
    if (AwaitWrite(key, update.cpus, node, update.told_at + kLongestUpdate)) {
      node.updates.Forget(key);
    } else {
      WarnOfSlowUpdate(key, update.cpus);
    }
    QRM_RETURN_IF_ERROR(Leave(key, cpus, node));
  }
  return OkStatus();
}

/// Containers that have some of `cpus` by values written to their cgroups leave them. If the
/// runtime is taking such a value, the container gets the CPUs again when the runtime writes it.
/// The first leave is needed to see that write.
Status LeaveDeferred(const ContainerKey& owner, const CpuSet& cpus, const NodeCpusets& node) {
  const Deadline deadline = DeadlineAfter(kLongestUpdate);
  for (const auto& [key, deferred] : node.live.DeferredWith(cpus)) {
    if (IsAnOwner(key, owner, cpus, node)) {
      continue;
    }
    QRM_RETURN_IF_ERROR(Leave(key, cpus, node));
    if (deferred.told.Intersects(cpus)) {
      if (!AwaitWrite(key, deferred.told, node, deadline)) {
        WarnOfSlowUpdate(key, deferred.told);
      }
      QRM_RETURN_IF_ERROR(Leave(key, cpus, node));
    }
  }
  return OkStatus();
}

}  // namespace

Status MakeRoomFor(const ContainerKey& key, const NodeCpusets& node) {
  const ContainerRecord* record = node.state.Find(key);
  const CpuSet cpus = record == nullptr ? CpuSet() : OwnedCpus(record->allocations);
  if (cpus.Empty() || !node.read) {
    return OkStatus();
  }
  QRM_RETURN_IF_ERROR(LeaveAfterUpdates(key, cpus, node));
  QRM_RETURN_IF_ERROR(LeaveDeferred(key, cpus, node));
  MayBeAmong among(cpus);
  if (!OthersMayHave(node.state, cpus, among)) {
    return OkStatus();
  }
  Status room;
  node.state.ForEachPod([&](const checkpoint::PodRecord& pod) {
    for (const auto& [name, has] : pod.containers) {
      if (room.ok() && MayHave(*has, among) && !OwnsSomeOf(*has, cpus)) {
        room = Leave({pod.meta.uid, name}, cpus, node);
      }
    }
  });
  return room;
}

bool MayRunOnOwned(const ContainerKey& key, const NodeCpusets& node) {
  const CpuSet owned = OwnedByOthers(key, node.state);
  const ContainerRecord* record = node.state.Find(key);
  MayBeAmong among(owned);
  return !owned.Empty() && node.read &&
         (record == nullptr ||
          record->applied_to != node.live.Find(key).value_or(LiveContainer()).id ||
          MayHave(*record, among));
}

Status LeaveOwned(const ContainerKey& key, const NodeCpusets& node) {
  const CpuSet owned = OwnedByOthers(key, node.state);
  return owned.Empty() || !node.read ? OkStatus() : Leave(key, owned, node);
}

}  // namespace qrm::manager
