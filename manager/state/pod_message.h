// A text about a pod for the events of the API server.
#pragma once

#include <string>

namespace qrm::manager {

/// Why a pod was rejected, or another warning about it.
struct PodMessage {
  std::string pod_namespace;
  std::string pod_name;
  std::string pod_uid;
  std::string message;
  std::string reason = "PlacementRefused";  ///< of the event
};

}  // namespace qrm::manager
