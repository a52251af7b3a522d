// Converts a container's CRI status to what the observer needs.
#pragma once

#include <string>

#include "manager/runtime/container.h"

namespace runtime::v1 {
class ContainerStatusResponse;
}  // namespace runtime::v1

namespace qrm::manager {

/// Adds to `container`, which a list named, what its verbose status tells: cgroup values, cgroup
/// path, OOM score and pid. The values are those that kubelet asked for, as far as the runtime
/// shows them; text of the runtime that is no JSON, or has another shape, adds nothing. Source:
/// containerd's and CRI-O's ContainerStatusResponse.info["info"], which holds "pid" and the OCI
/// "runtimeSpec".
void AddStatus(const ::runtime::v1::ContainerStatusResponse& response, RuntimeContainer& container);

}  // namespace qrm::manager
