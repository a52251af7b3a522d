// What a container is run with: the allocations of all its resources, put together.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "manager/runtime/container.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::manager {

/// The allocations of one container as a runtime takes them.
struct RunOptions {
  StringMap properties;  ///< OCI property -> value; only names that CheckOciProperty takes
  StringMap envs;
  StringMap annotations;
  std::vector<Mount> mounts;
  std::vector<DeviceSpec> devices;
  /// What two resources set differently, and who won: one sentence each.
  std::vector<std::string> conflicts;
  sdk::ClassOptions classes;  ///< what its classes are made of; a property wins over it
};

/// Puts `allocations` together in the order of their resources' names: of two that set the same
/// property, variable, annotation, mount or device, the first wins. CpusetCpus has the CPUs that
/// any of them shares, too, but none that is `offline`, and is missing when that leaves none.
RunOptions MakeRunOptions(const AllocationByResource& allocations, const CpuSet& offline = {});

/// Whether `allocation` is nothing but variables, annotations, mounts and devices: what a container
/// gets when it is made, or not at all.
bool IsForNewOnly(const ResourceAllocation& allocation);

/// Whether `container`, as the runtime tells of it, was made with all of these in `allocation`.
bool WasMadeWith(const placement::MadeWith& container, const ResourceAllocation& allocation);

/// `value`, a CpusetCpus, with the CPUs that `allocations` share. The same text when they share
/// none.
std::string WithShared(const std::string& value, const AllocationByResource& allocations);

/// `value`, a CpusetCpus, without the CPUs that are `offline`: nothing runs on them, and a kernel
/// with cgroup v1 refuses a cpuset that names one. The same text when it names none.
std::string WithoutOffline(const std::string& value, const CpuSet& offline);

/// OK when `name` is a knob that an allocation may set (CpusetCpus, CpusetMems, CpuPeriod,
/// CpuQuota, CpuShares, MemoryLimitInBytes, MemorySwapLimitInBytes, OomScoreAdj) and `value` is one
/// of its values; an empty cpuset is none, since runtimes take it for "leave as it is".
/// Errors: kInvalidArgument naming both and what is accepted.
/// Source: CRI LinuxContainerResources in Go spelling, as kubelet's QoS resource manager reads it.
Status CheckOciProperty(std::string_view name, std::string_view value);

/// `properties` as cgroup values; they must have passed CheckOciProperty. OomScoreAdj is no cgroup
/// value and left out.
LinuxResources ToLinuxResources(const StringMap& properties);

/// Everything that is set while a container is created.
ContainerAdjustment ToAdjustment(const RunOptions& options);

/// {"envs":{},"annotations":{},"linux_container_resources":{"cpusetCpus":"0-3"}}, empty parts left
/// out. Source: the QoS Resource Manager proposal's ResourceRunContainerOptions.
std::string ToJson(const RunOptions& options);

}  // namespace qrm::manager
