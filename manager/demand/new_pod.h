// Turns a pod that is not on the node yet into the admissions that it would cause.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/demand/demand_source.h"

namespace qrm::manager {

/// Whether qrmd is told the specs of pods, or estimates what they request from their cgroups.
enum class SpecsFrom { kKubelet, kCgroups };

struct NewPod {
  /// What DryRun::Run takes: one for all containers, or one each where their spec is not known.
  std::vector<placement::ContainerDemand> admissions;
  /// What the pod requests and its cgroups will not show.
  std::vector<std::string> unseen;
};

/// The pod in the serialized k8s.io.api.core.v1.Pod `bytes`, under the UID `uid`: its own, if it
/// has one, may be that of a pod which is there. Without a namespace it is in "default".
/// Errors: kInvalidArgument for bytes that are no pod, for one that is too large, and as
/// ReadManifest.
StatusOr<NewPod> ReadNewPod(const std::string& bytes, const std::string& uid,
                            const placement::PodKeys& keys, SpecsFrom specs);

}  // namespace qrm::manager
