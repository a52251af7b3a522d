// What the containers of a pod need together.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/resource.h"

namespace qrm {

/// What one container asks for. Units: each resource's own. Source: the pod's resources.
struct ContainerAmounts {
  ContainerType type = ContainerType::kMain;
  std::map<std::string, double> amounts;
};

/// What a pod needs at its most demanding moment. Init containers come first, in their order;
/// sidecars keep running once they have started.
/// Units: each resource's own. Cost: O(containers x resources).
/// Source: Kubernetes 1.36, getPodRequestedResources.
std::map<std::string, double> PodRequest(const std::vector<ContainerAmounts>& containers);

}  // namespace qrm
