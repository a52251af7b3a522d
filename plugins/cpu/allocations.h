// CPUs as containers get them: the plugin's answers to the manager.
#pragma once

#include <map>

#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/cpu/state.h"
#include "plugins/sdk/plugin.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// `cpus` for a container that shares them.
ResourceAllocation ShareCpus(const Machine& machine, const CpuSet& cpus);
/// `cpus` for a container of its own; `preferred`: they are where it was to be.
ResourceAllocation OwnCpus(const Machine& machine, const CpuSet& cpus, bool preferred);

/// Those of `grants` whose allocations are to change, because pools or the machine did.
/// Cost: O(containers), besides one allocation per pool.
std::map<ContainerKey, ResourceAllocation> ChangedAllocations(const View& view,
                                                              const sdk::Grants& grants);

}  // namespace qrm::cpu
