// Reads and writes cpuset.cpus.
#include "manager/pods/make_room.h"

#include <system_error>

#include <fcntl.h>

#include "manager/state/allocation_check.h"
#include "plugins/cgroup/small_file.h"

namespace qrm::manager {
namespace {

/// Owners of the same CPUs run in turn, by the checks of their admissions.
bool OwnsSomeOf(const checkpoint::NodeState& state, const ContainerKey& key, const CpuSet& cpus) {
  const checkpoint::ContainerRecord* record = state.Find(key);
  return record != nullptr && OwnedCpus(record->allocations).Intersects(cpus);
}

Status Leave(const std::string& cgroups_path, const ContainerKey& key, const CpuSet& cpus,
             const CpusetSource& read_cpuset) {
  const StatusOr<CgroupCpuset> has = read_cpuset(cgroups_path);
  if (!has.ok() || !has->cpus.Intersects(cpus)) {
    return OkStatus();  // it is gone, or elsewhere
  }
  const CpuSet left = has->cpus - cpus;
  if (left.Empty()) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "container {} of pod {} has no other CPUs than {}; delete its pod", key.container,
                  key.pod_uid, ToString(has->cpus));
  }
  cgroup::SmallFile file(has->path + "/cpuset.cpus", O_WRONLY | O_CLOEXEC);
  if (file.error() == 0) {
    file.Write(ToString(left));
  }
  if (file.error() != 0 && file.error() != ENOENT && file.error() != ENODEV) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "container {} of pod {} does not leave CPUs {} ({}: {}); it is tried again",
                  key.container, key.pod_uid, ToString(has->cpus & cpus), has->path,
                  std::generic_category().message(file.error()));
  }
  return OkStatus();
}

}  // namespace

Status MakeRoomFor(const ContainerKey& key, const checkpoint::NodeState& state,
                   const LiveContainers& live, const CpusetSource& read_cpuset) {
  const checkpoint::ContainerRecord* record = state.Find(key);
  if (record == nullptr || !read_cpuset) {
    return OkStatus();
  }
  const CpuSet cpus = OwnedCpus(record->allocations);
  for (const auto& [other, container] : live.All()) {
    if (other != key && container.started && !container.cgroups_path.empty() &&
        !OwnsSomeOf(state, other, cpus)) {
      QRM_RETURN_IF_ERROR(Leave(container.cgroups_path, other, cpus, read_cpuset));
    }
  }
  return OkStatus();
}

}  // namespace qrm::manager
