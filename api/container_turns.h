// Tells which containers of a pod never run at the same time.
#pragma once

#include "api/resource.h"

namespace qrm {

/// True for an init container and one that starts when it has ended: they may have the same CPUs.
/// Sidecars may run beside init containers. Source: the reuse of init containers' CPUs by kubelet's
/// CPU manager.
constexpr bool RunInTurn(ContainerType a, ContainerType b) {
  const auto waits = [](ContainerType type) {
    return type == ContainerType::kInit || type == ContainerType::kMain;
  };
  return (a == ContainerType::kInit && waits(b)) || (b == ContainerType::kInit && waits(a));
}

}  // namespace qrm
