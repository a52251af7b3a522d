// Compares what a record says was applied to a container with what the runtime or the kernel shows.
#pragma once

#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/runtime/cgroup_reader.h"
#include "manager/runtime/container.h"

namespace qrm::manager {

/// The cpuset part of what `record` says its container should have, but for CPUs that are
/// `offline`.
LinuxResources CpusetOf(const checkpoint::ContainerRecord& record, const CpuSet& offline);

/// Puts the kernel's cpuset in the place of what the runtime says of `container`; none where it
/// cannot be read. An empty `read` changes nothing.
void UseKernelsCpuset(const CpusetSource& read, RuntimeContainer& container);

/// True when both have the same cpuset, as text.
bool SameCpuset(const LinuxResources& a, const LinuxResources& b);

/// Adds to `change` what `container`, whose record under `key` `state` has and which was not
/// followed until now, has of our values; nothing when the record says so already. It has the
/// cpuset if `container.resources`, the word of the runtime or the kernel, shows ours but for CPUs
/// that are `offline`; the other
/// values only if it took them itself and not a container before it. True when a reconcile has to
/// apply the rest.
bool NoteFoundValues(const checkpoint::NodeState& state, const ContainerKey& key,
                     const RuntimeContainer& container, const CpuSet& offline,
                     checkpoint::Change& change);

}  // namespace qrm::manager
