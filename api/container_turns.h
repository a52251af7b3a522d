// Decides which containers of a pod never run at the same time.
#pragma once

#include "api/resource.h"

namespace qrm {

/// True for an init container and a container that starts when it has ended: they may own the same
/// CPUs. A sidecar counts as one, since kubelet lets it have the CPUs of the init containers before
/// it; the caller must check that the sidecar comes after them. Source: Kubernetes 1.36, CPU
/// manager, static policy, updateCPUsToReuse.
constexpr bool RunInTurn(ContainerType a, ContainerType b) {
  const bool anytime = a == ContainerType::kEphemeral || b == ContainerType::kEphemeral;
  return !anytime && (a == ContainerType::kInit || b == ContainerType::kInit);
}

}  // namespace qrm
