// Reads the pods that kubelet's /pods lists: a v1.PodList in JSON.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/demand/pod_spec.h"

namespace qrm::manager {

/// A list that was read.
struct PodList {
  std::vector<PodSpec> specs;
  std::vector<Status> unusable;  ///< one for each pod that is left out
};

/// Errors: kInvalidArgument when `json` is no PodList, or beyond the bounds of ParseJsonList or
/// 10,000 pods, with the cause.
StatusOr<PodList> ParsePodList(const std::string& json);

}  // namespace qrm::manager
