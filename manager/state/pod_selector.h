// Finds the pod that an operator names.
#pragma once

#include <string>

#include "api/base/status.h"
#include "checkpoint/node_state.h"

namespace qrm::manager {

/// The identifiers of a pod.
struct PodNames {
  const std::string& uid;
  const std::string& pod_namespace;
  const std::string& name;
};

/// Whether `selector` is the name, "namespace/name" or the UID of the pod.
bool IsMeant(const std::string& selector, const PodNames& names);

/// The only pod that `selector` means, for actions that must not hit another pod. Errors:
/// kNotFound; kInvalidArgument when several pods have that name.
StatusOr<const checkpoint::PodRecord*> FindMeantPod(const checkpoint::NodeState& state,
                                                    const std::string& selector);

}  // namespace qrm::manager
