// Converts a container's CRI status to the values that the observer needs.
#pragma once

#include <string>

#include "manager/runtime/container.h"

namespace runtime::v1 {
class ContainerStatusResponse;
}  // namespace runtime::v1

namespace qrm::manager {

/// Adds to a listed `container` the values of its verbose status: cgroup values, cgroup path, OOM
/// score and pid. The cgroup values are those that kubelet requested, as far as the runtime shows
/// them. Text that is not JSON, or has another shape, adds nothing. Source: containerd's and
/// CRI-O's ContainerStatusResponse.info["info"], which holds "pid" and the OCI "runtimeSpec".
void AddStatus(const ::runtime::v1::ContainerStatusResponse& response, RuntimeContainer& container);

}  // namespace qrm::manager
