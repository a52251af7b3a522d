// The requests that we send to the API server, as values.
#pragma once

#include <chrono>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/resource.h"
#include "cluster/api_client.h"

namespace qrm::cluster {

/// `text` as a part of a URL's query or path.
std::string PercentEncoded(const std::string& text);

struct Binding {
  std::string pod_namespace;
  std::string pod;
  std::string uid;
  std::string node;
  StringMap annotations;  ///< written on the pod in the same step
};
/// Puts a pod on a node. 409: it is on one already, is another pod of that name, or is being
/// deleted; 404: it is gone; each is final for this UID. The server does not look whether the node
/// exists. Source: Kubernetes, core/v1 Binding.
ApiRequest BindRequest(const Binding& binding);

/// Merges `patch` into the object at `path`. Source: RFC 7386.
ApiRequest MergePatchRequest(const std::string& path, const nlohmann::json& patch);

/// "2026-01-31T12:00:00.000000Z", as MicroTime is written. Source: apimachinery meta/v1.
std::string MicroTime(std::chrono::system_clock::time_point time);

}  // namespace qrm::cluster
