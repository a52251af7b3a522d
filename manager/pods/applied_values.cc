// Compares cpusets, and drops recorded values that containers do not have.
#include "manager/pods/applied_values.h"

#include <algorithm>
#include <string>

#include "api/id_set.h"
#include "manager/reconcile/plan.h"
#include "manager/runtime/run_options.h"

namespace qrm::manager {

using checkpoint::Change;
using checkpoint::ContainerRecord;
using checkpoint::NodeState;

namespace {

/// True when `ours` and `b` list the same ids except for `ignored`, however they are written.
template <typename Set>
bool IsSameList(const std::string& ours, const std::string& b, const Set& ignored = {}) {
  if (ours == b) {
    return !ours.empty();
  }
  const StatusOr<Set> first = Set::Parse(ours);
  const StatusOr<Set> second = Set::Parse(b);
  return first.ok() && second.ok() && !first->Empty() && *first - ignored == *second - ignored;
}

}  // namespace

LinuxResources CpusetOf(const ContainerRecord& record, const CpuSet& offline) {
  const LinuxResources wanted =
      ToLinuxResources(MakeRunOptions(record.allocations, offline).properties);
  LinuxResources cpuset;
  cpuset.cpuset_cpus = wanted.cpuset_cpus;
  cpuset.cpuset_mems = wanted.cpuset_mems;
  return cpuset;
}

void UseKernelsCpuset(const CpusetSource& read, RuntimeContainer& container) {
  if (read == nullptr || container.cgroups_path.empty()) {
    return;
  }
  const StatusOr<CgroupCpuset> actual = read(container.cgroups_path);
  container.resources.cpuset_cpus = actual.ok() ? ToString(actual->cpus) : "";
  container.resources.cpuset_mems = actual.ok() ? ToString(actual->mems) : "";
}

bool SameCpuset(const LinuxResources& a, const LinuxResources& b) {
  return a.cpuset_cpus == b.cpuset_cpus && a.cpuset_mems == b.cpuset_mems;
}

bool NoteFoundValues(const NodeState& state, const ContainerKey& key,
                     const RuntimeContainer& container, const CpuSet& offline, Change& change) {
  const ContainerRecord& before = *state.Find(key);
  const LinuxResources& actual = container.resources;
  const auto is_foreign = [&](const auto& entry) {
    const auto& [property, value] = entry;
    if (property == kCpusetCpus) {
      return !IsSameList<CpuSet>(value, actual.cpuset_cpus, offline);
    }
    if (property == kCpusetMems) {
      return !IsSameList<NumaMask>(value, actual.cpuset_mems);
    }
    return before.applied_to != container.id;
  };
  const bool any_foreign = std::any_of(before.applied.begin(), before.applied.end(), is_foreign);
  if (before.applied_to == container.id && !any_foreign) {
    return !PropertiesToApply(before, container.id, offline).empty();
  }
  ContainerRecord now = before;
  now.applied_to = container.id;
  if (any_foreign) {
    std::erase_if(now.applied.Edit(), is_foreign);
  }
  const bool incomplete = !PropertiesToApply(now, container.id, offline).empty();
  if (now != before) {
    change.put_containers.push_back(
        {state.FindPod(key.pod_uid)->meta, key.container, std::move(now)});
  }
  return incomplete;
}

}  // namespace qrm::manager
