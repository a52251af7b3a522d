// Converts a pod that is not on the node yet into the admissions that it would cause.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/demand/demand_source.h"

namespace qrm::manager {

/// Whether qrmd gets pod specs, or estimates requests from cgroup values.
enum class SpecsFrom { kKubelet, kCgroups };

struct NewPod {
  /// The argument of DryRun::Run: one demand for all containers, or one each without specs.
  std::vector<ContainerDemand> admissions;
  /// Requested resources that the pod's cgroups will not show.
  std::vector<std::string> unseen;
};

/// The pod in the serialized k8s.io.api.core.v1.Pod `bytes`, with `uid` instead of the UID in it,
/// which may be that of an existing pod. The default namespace is "default".
/// Errors: kInvalidArgument for bytes that are not a pod and for a pod that is too large; those of
/// ReadManifest.
StatusOr<NewPod> ReadNewPod(const std::string& bytes, const std::string& uid, const PodKeys& keys,
                            SpecsFrom specs);

}  // namespace qrm::manager
