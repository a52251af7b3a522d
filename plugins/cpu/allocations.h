// CPUs as containers get them: the plugin's answers to the manager.
#pragma once

#include <map>

#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/cpu/state.h"
#include "plugins/sdk/resource_plugin.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// Variables of a container with CPUs of its own beside a pool's: lists in the kernel's form.
inline constexpr char kOwnCpusEnv[] = "QRM_OWN_CPUS";
inline constexpr char kSharedCpusEnv[] = "QRM_SHARED_CPUS";

/// `cpus` for a container that shares them.
ResourceAllocation ShareCpus(const Machine& machine, const CpuSet& cpus);
/// `cpus` for a container of its own; `preferred`: they are where it was to be.
ResourceAllocation OwnCpus(const Machine& machine, const CpuSet& cpus, bool preferred);

/// Adds to `allocation`, the CPUs of `holding`, those that it shares. With the pool's name in
/// `shares_of` the program is told both lists, too, as they are when it starts.
void ShareBeside(const Holding& holding, const CpuSet& shares, ResourceAllocation& allocation);

/// Those of `grants` whose allocations are to change, because pools or the machine did.
/// Cost: O(containers), besides one allocation per pool.
std::map<ContainerKey, ResourceAllocation> ChangedAllocations(const View& view,
                                                              const sdk::Grants& grants);

}  // namespace qrm::cpu
