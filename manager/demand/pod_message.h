// Parses pods from kubelet's Pods API, which sends Kubernetes protobuf.
#pragma once

#include <string>

#include "api/base/status.h"
#include "manager/demand/pod_spec.h"

namespace qrm::manager {

/// The spec in a serialized k8s.io.api.core.v1.Pod. Errors: kInvalidArgument for bytes that are not
/// a pod, else as ReadManifest.
StatusOr<PodSpec> ParsePodMessage(const std::string& bytes);

/// The UID in the message, which is all that the message of a deleted pod has. Also reads it if the
/// rest is not a valid pod; empty without a UID.
std::string UidOfPodMessage(const std::string& bytes);

}  // namespace qrm::manager
