// Decides which containers of a pod never run at the same time, and what they need at once.
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

/// An amount that a pod's containers need. Of init containers the largest counts, as they run in
/// turn, and only where the others together need less: so every policy counts. Source: Kubernetes
/// 1.36, getPodRequestedResources, except for sidecars that run beside a later init container.
template <typename T>
class AmountInTurn {
 public:
  void Add(ContainerType type, T amount) {
    if (type != ContainerType::kInit) {
      others_ += amount;
    } else if (largest_init_ < amount) {
      largest_init_ = amount;
    }
  }
  T AtOnce() const { return largest_init_ < others_ ? others_ : largest_init_; }

 private:
  T largest_init_{};
  T others_{};
};

}  // namespace qrm
