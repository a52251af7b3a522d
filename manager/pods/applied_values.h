// Compares what a record says was applied to a container with what the runtime or the kernel shows.
#pragma once

#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "manager/runtime/container.h"

namespace qrm::manager {

/// The cpuset part of what `record` says its container should have.
LinuxResources CpusetOf(const checkpoint::ContainerRecord& record);

/// True when both have the same cpuset, as text.
bool SameCpuset(const LinuxResources& a, const LinuxResources& b);

/// Both add to `change` that the container of `key`, which `state` has, lost what was applied to
/// it, so that the next reconcile applies it again; nothing when it has it all.
///
/// For a container that was created with us: `actual` is the runtime's word, and another cpuset
/// there is somebody else's, or of a new container of the same name.
void ForgetOthersCpuset(const checkpoint::NodeState& state, const ContainerKey& key,
                        const LinuxResources& actual, checkpoint::Change& change);
/// For a container that was created without us: of our values it has only the cpuset that the
/// kernel shows, `actual`.
void ForgetAllButCpuset(const checkpoint::NodeState& state, const ContainerKey& key,
                        const LinuxResources& actual, checkpoint::Change& change);

}  // namespace qrm::manager
