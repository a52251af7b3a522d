// Parses kubelet's answer to GET /pods, a v1.PodList in JSON.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "manager/demand/pod_spec.h"

namespace qrm::manager {

/// A parsed list.
struct PodList {
  std::vector<PodSpec> specs;
  std::vector<Status> unusable;  ///< one for each pod that is left out
};

/// Errors: kInvalidArgument, with the cause, when `json` is not a PodList, or is beyond the bounds
/// of ParseJsonList or 10,000 pods.
StatusOr<PodList> ParsePodList(const std::string& json);

}  // namespace qrm::manager
