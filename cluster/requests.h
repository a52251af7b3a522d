// The requests that we send to the API server, as values.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/resource.h"
#include "cluster/api_client.h"

namespace qrm::cluster {

/// `text` as a part of a URL's query or path.
std::string PercentEncoded(const std::string& text);

std::string PodPath(const std::string& pod_namespace, const std::string& pod);

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

/// Makes the object at `path` have what `object` says, and takes away what `manager` applied
/// before; takes fields that others manage. Source: Kubernetes, "Server-Side Apply".
ApiRequest ApplyRequest(const std::string& path, const nlohmann::json& object,
                        const std::string& manager);

/// A warning about a pod, for `kubectl describe pod`.
struct PodWarning {
  std::string name;  ///< of the event: one of the same name is changed
  std::string pod_namespace;
  std::string pod_name;
  std::string pod_uid;
  std::string reason;  ///< one word in CamelCase
  std::string message;
  std::string component;  ///< the event's source
  std::string host;
  uint64_t count = 1;
  std::chrono::system_clock::time_point first;
  std::chrono::system_clock::time_point last;
};
/// Source: Kubernetes, core/v1 Event.
ApiRequest WarningRequest(const PodWarning& warning);

/// "2026-01-31T12:00:00.000000Z", as MicroTime is written. Source: apimachinery meta/v1.
std::string MicroTime(std::chrono::system_clock::time_point time);

}  // namespace qrm::cluster
