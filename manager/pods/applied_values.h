// Compares the values that a record says were applied with those that the runtime or kernel shows.
#pragma once

#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/runtime/cgroup_cpusets.h"
#include "manager/runtime/container.h"

namespace qrm::manager {

/// The cpuset that the container of `record` should have, without CPUs that are `offline`.
LinuxResources CpusetOf(const checkpoint::ContainerRecord& record, const CpuSet& offline);

/// Replaces the runtime's cpuset in `container` by the kernel's; empties it if the kernel's cannot
/// be read. An empty `read` changes nothing.
void UseKernelsCpuset(const CpusetSource& read, RuntimeContainer& container);

/// True when both have the same cpuset, as text.
bool SameCpuset(const LinuxResources& a, const LinuxResources& b);

/// Adds to `change` which recorded values `container` has, which has just been found; `state` has
/// its record under `key`. Adds nothing if the record says so already. The container has the cpuset
/// if `container.resources`, from the runtime or the kernel, shows the recorded one without CPUs
/// that are `offline`. It has the other values only if this container took them, and not an earlier
/// one. True when a reconcile has to apply the rest.
bool NoteFoundValues(const checkpoint::NodeState& state, const ContainerKey& key,
                     const RuntimeContainer& container, const CpuSet& offline,
                     checkpoint::Change& change);

}  // namespace qrm::manager
