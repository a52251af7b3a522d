// The values that a container is run with: the allocations of all its resources, merged.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "manager/runtime/container.h"
#include "plugins/placement/demand.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::manager {

/// The allocations of one container as a runtime takes them.
struct RunOptions {
  StringMap properties;  ///< OCI property -> value; only names that CheckProperty takes
  StringMap envs;
  StringMap annotations;
  std::vector<Mount> mounts;
  std::vector<DeviceSpec> devices;
  /// Values that two resources set differently, and which resource wins: one sentence each.
  std::vector<std::string> conflicts;
  sdk::ClassOptions classes;  ///< of its classes; a property wins over it
  /// The requested resources that their plugins answered without an allocation.
  std::vector<std::string> unanswered;
};

/// Merges `allocations` in the order of their resources' names. If two set the same property,
/// variable, annotation, mount or device, the first wins. CpusetCpus also has the CPUs that any of
/// them shares, but no `offline` CPUs, and is missing when no CPU is left.
RunOptions MakeRunOptions(const AllocationByResource& allocations, const CpuSet& offline = {});

/// Whether `allocation` has only variables, annotations, mounts and devices, which a container can
/// get only when it is created.
bool IsForNewOnly(const ResourceAllocation& allocation);

/// Whether the runtime reports that `container` was created with all of these in `allocation`.
bool WasMadeWith(const placement::MadeWith& container, const ResourceAllocation& allocation);

/// `value`, a CpusetCpus, with the CPUs that `allocations` share. The same text if they share none.
std::string WithShared(const std::string& value, const AllocationByResource& allocations);

/// `value`, a CpusetCpus, without the CPUs that are `offline`: nothing runs on them, and a kernel
/// with cgroup v1 rejects a cpuset that has one. The same text if it has none.
std::string WithoutOffline(const std::string& value, const CpuSet& offline);

/// Files of cgroup v2 and their values, as an object in JSON.
inline constexpr std::string_view kUnified = "Unified";
/// Only of new containers, since containerd appends them at each update. A list of CRI's
/// HugepageLimit in JSON.
inline constexpr std::string_view kHugepageLimits = "HugepageLimits";

/// OK when `allocation` has no property, or one that it may set (CpusetCpus, CpusetMems, CpuPeriod,
/// CpuQuota, CpuShares, HugepageLimits, MemoryLimitInBytes, MemorySwapLimitInBytes, OomScoreAdj,
/// Unified) with a valid value. An empty cpuset is not, since runtimes take it as "do not change
/// it". Errors: kInvalidArgument naming both and what is accepted. Source: CRI
/// LinuxContainerResources in Go spelling, as kubelet's QoS resource manager reads it.
Status CheckProperty(const ResourceAllocation& allocation);

/// `properties` as cgroup values; they must have passed CheckProperty. OomScoreAdj is not a
/// cgroup value and left out.
LinuxResources ToLinuxResources(const StringMap& properties);

/// Everything that is set while a container is created.
ContainerAdjustment ToAdjustment(const RunOptions& options);

/// {"envs":{},"annotations":{},"linux_container_resources":{"cpusetCpus":"0-3"}}, without empty
/// parts. Source: the QoS Resource Manager proposal's ResourceRunContainerOptions.
std::string ToJson(const RunOptions& options);

}  // namespace qrm::manager
