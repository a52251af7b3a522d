// Reads pods as kubelet's Pods API sends them, in Kubernetes' own protobuf.
#pragma once

#include <string>

#include "api/base/status.h"
#include "manager/demand/pod_spec.h"

namespace qrm::manager {

/// The spec in a serialized k8s.io.api.core.v1.Pod. Errors: kInvalidArgument for bytes that are no
/// pod, else as ReadManifest.
StatusOr<PodSpec> ParsePodMessage(const std::string& bytes);

/// The UID in it, which is all that the message of a deleted pod has, also when what follows it is
/// no pod; empty when there is none.
std::string UidOfPodMessage(const std::string& bytes);

}  // namespace qrm::manager
