// Compares cpusets, and drops recorded values that no longer hold.
#include "manager/pods/applied_values.h"

#include <string>

#include "api/id_set.h"
#include "manager/runtime/run_options.h"

namespace qrm::manager {

using checkpoint::Change;
using checkpoint::ContainerRecord;
using checkpoint::NodeState;

namespace {

/// True when both name the same ids, however they are written.
template <typename Set>
bool IsSameList(const std::string& a, const std::string& b) {
  const StatusOr<Set> first = Set::Parse(a);
  const StatusOr<Set> second = Set::Parse(b);
  return first.ok() && second.ok() && !first->Empty() && *first == *second;
}

}  // namespace

LinuxResources CpusetOf(const ContainerRecord& record) {
  const LinuxResources wanted = ToLinuxResources(MakeRunOptions(record.allocations).properties);
  LinuxResources cpuset;
  cpuset.cpuset_cpus = wanted.cpuset_cpus;
  cpuset.cpuset_mems = wanted.cpuset_mems;
  return cpuset;
}

bool SameCpuset(const LinuxResources& a, const LinuxResources& b) {
  return a.cpuset_cpus == b.cpuset_cpus && a.cpuset_mems == b.cpuset_mems;
}

void ForgetOthersCpuset(const NodeState& state, const ContainerKey& key,
                        const LinuxResources& actual, Change& change) {
  const ContainerRecord& record = *state.Find(key);
  if (record.applied.empty() || SameCpuset(ToLinuxResources(record.applied), actual)) {
    return;
  }
  Change::PutContainer put{state.FindPod(key.pod_uid)->meta, key.container, record};
  put.record.applied.erase(std::string(kCpusetCpus));
  put.record.applied.erase(std::string(kCpusetMems));
  change.put_containers.push_back(std::move(put));
}

void ForgetAllButCpuset(const NodeState& state, const ContainerKey& key,
                        const LinuxResources& actual, Change& change) {
  const ContainerRecord& record = *state.Find(key);
  Change::PutContainer put{state.FindPod(key.pod_uid)->meta, key.container, record};
  std::erase_if(put.record.applied, [&](const auto& entry) {
    const auto& [property, value] = entry;
    return !(property == kCpusetCpus && IsSameList<CpuSet>(value, actual.cpuset_cpus)) &&
           !(property == kCpusetMems && IsSameList<NumaMask>(value, actual.cpuset_mems));
  });
  if (put.record.applied.size() != record.applied.size()) {
    change.put_containers.push_back(std::move(put));
  }
}

}  // namespace qrm::manager
