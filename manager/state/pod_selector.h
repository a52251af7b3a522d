// Which pod a person means.
#pragma once

#include <string>

#include "api/base/status.h"
#include "checkpoint/node_state.h"

namespace qrm::manager {

/// What a pod is known by.
struct PodNames {
  const std::string& uid;
  const std::string& pod_namespace;
  const std::string& name;
};

/// Whether `selector` is the name, "namespace/name" or the UID of the pod.
bool IsMeant(const std::string& selector, const PodNames& names);

/// The one pod that `selector` means, for what must not hit another one. Errors: kNotFound;
/// kInvalidArgument when several pods have that name.
StatusOr<const checkpoint::PodRecord*> FindMeantPod(const checkpoint::NodeState& state,
                                                    const std::string& selector);

}  // namespace qrm::manager
