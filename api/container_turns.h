// Decides which containers of a pod never run at the same time, and what they need at once.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

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

/// What one container asks for. Units: each resource's own. Source: the pod's resources.
struct ContainerAmounts {
  ContainerType type = ContainerType::kMain;
  std::map<std::string, double> amounts;
};

/// What a pod needs at its most demanding moment. Init containers come first, in their order;
/// sidecars keep running once they have started.
/// Units: each resource's own. Cost: O(containers x resources).
/// Source: Kubernetes 1.36, getPodRequestedResources.
inline std::map<std::string, double> PodRequest(const std::vector<ContainerAmounts>& containers) {
  std::map<std::string, double> staying;  // of started containers that do not end by themselves
  std::map<std::string, double> most;
  for (const ContainerAmounts& container : containers) {
    for (const auto& [name, amount] : container.amounts) {
      const double now = staying[name] + amount;
      if (container.type != ContainerType::kInit) {
        staying[name] = now;
      }
      most[name] = std::max(most[name], now);
    }
  }
  return most;
}

}  // namespace qrm
