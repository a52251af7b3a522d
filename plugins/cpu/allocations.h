// Allocations of CPUs: the plugin's answers to the manager.
#pragma once

#include <map>

#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/cpu/state.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// Variables of a container with exclusive CPUs beside a pool: CPU lists in the kernel's form.
inline constexpr char kOwnCpusEnv[] = "QRM_OWN_CPUS";
inline constexpr char kSharedCpusEnv[] = "QRM_SHARED_CPUS";

/// `cpus` for a container that shares them.
ResourceAllocation ShareCpus(const Machine& machine, const CpuSet& cpus);
/// `cpus` as exclusive CPUs; `preferred`: they are on the nodes of the hint.
ResourceAllocation OwnCpus(const Machine& machine, const CpuSet& cpus, bool preferred);

/// Adds the pool's CPUs `shares` to `allocation`, which has the exclusive CPUs of `holding`. If
/// `shares_of` names the pool, the container also gets both lists as variables, as of its start.
void ShareBeside(const Holding& holding, const CpuSet& shares, ResourceAllocation& allocation);

/// The new allocations of grants whose CPUs changed with the pools or the machine. Cost:
/// O(containers), besides one allocation per pool.
std::map<ContainerKey, ResourceAllocation> ChangedAllocations(const View& view,
                                                              const sdk::Grants& grants);

}  // namespace qrm::cpu
