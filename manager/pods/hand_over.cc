// Reads and writes cpuset.cpus.
#include "manager/pods/hand_over.h"

#include <cerrno>
#include <optional>
#include <string>
#include <system_error>

#include <fcntl.h>

#include "manager/pods/applied_values.h"
#include "manager/state/allocation_check.h"
#include "plugins/cgroup/small_file.h"

namespace qrm::manager {
namespace {

using checkpoint::ContainerRecord;

/// Owners of the same CPUs run in turn, by the checks of their admissions.
bool OwnsSomeOf(const ContainerRecord* record, const CpuSet& cpus) {
  return record != nullptr && OwnedCpus(record->allocations).Intersects(cpus);
}

/// Whether the container that the runtime calls `id` may have some of `cpus` in the kernel; one of
/// which nothing is known may have all.
bool MayHave(const ContainerRecord* record, const std::string& id, const CpuSet& cpus) {
  if (record == nullptr) {
    return true;
  }
  const auto are_among = [&cpus](const std::string& list) {
    const StatusOr<CpuSet> parsed = CpuSet::Parse(list);
    return !parsed.ok() || parsed->Empty() || parsed->Intersects(cpus);
  };
  const StringMap& applied = record->AppliedTo(id);
  const auto took = applied.find(std::string(kCpusetCpus));
  return took == applied.end() || are_among(took->second) ||
         are_among(CpusetOf(*record, {}).cpuset_cpus);
}

/// Where nobody owns CPUs.
CpuSet FreeForAll(const NodeCpusets& node) {
  return node.machine.cpu_set() - OwnedCpus(node.state) - node.machine.OfflineNow();
}

Status Leave(const ContainerKey& key, const LiveContainer& container, const CpuSet& cpus,
             const NodeCpusets& node) {
  const StatusOr<CgroupCpuset> has = node.read(container.cgroups_path);
  if (!has.ok() || !has->cpus.Intersects(cpus)) {
    return OkStatus();  // it is gone, or elsewhere
  }
  const CpuSet rest = has->cpus - cpus;
  const CpuSet left = rest.Empty() ? FreeForAll(node) : rest;
  if (left.Empty()) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "container {} of pod {} runs on CPUs {}, and others own all that there are; "
                  "delete its pod",
                  key.container, key.pod_uid, ToString(has->cpus));
  }
  cgroup::SmallFile file(has->path + "/cpuset.cpus", O_WRONLY | O_CLOEXEC);
  if (file.error() == 0) {
    file.Write(ToString(left));
  }
  if (file.error() != 0 && file.error() != ENOENT && file.error() != ENODEV) {
    const bool may_not = file.error() == EROFS || file.error() == EACCES || file.error() == EPERM;
    return Errorf(may_not ? StatusCode::kPermissionDenied : StatusCode::kFailedPrecondition,
                  "container {} of pod {} does not leave CPUs {} ({}: {}); it is tried again",
                  key.container, key.pod_uid, ToString(has->cpus & cpus), has->path,
                  std::generic_category().message(file.error()));
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
  for (const auto& [other, container] : node.live.All()) {
    const ContainerRecord* has = node.state.Find(other);
    if (other != key && !container.cgroups_path.empty() && !OwnsSomeOf(has, cpus) &&
        MayHave(has, container.id, cpus)) {
      QRM_RETURN_IF_ERROR(Leave(other, container, cpus, node));
    }
  }
  return OkStatus();
}

bool MayRunOnOwned(const ContainerKey& key, const NodeCpusets& node) {
  const CpuSet owned = OwnedByOthers(key, node.state);
  return !owned.Empty() && node.read &&
         MayHave(node.state.Find(key), node.live.Find(key).value_or(LiveContainer()).id, owned);
}

Status LeaveOwned(const ContainerKey& key, const NodeCpusets& node) {
  const CpuSet owned = OwnedByOthers(key, node.state);
  const std::optional<LiveContainer> container = node.live.Find(key);
  if (owned.Empty() || !node.read || !container.has_value() || container->cgroups_path.empty()) {
    return OkStatus();
  }
  return Leave(key, *container, owned, node);
}

}  // namespace qrm::manager
