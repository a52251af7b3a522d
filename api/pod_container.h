// The containers of a pod as its spec has them, and what Kubernetes derives from all of them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/resource.h"

namespace qrm {

/// One container of a pod's spec.
struct PodContainer {
  /// kSidecar: an init container that keeps running.
  enum class Kind { kInit, kSidecar, kApp, kEphemeral };

  std::string name;
  Kind kind = Kind::kApp;
  /// Amounts above zero; without a request, the limit. Units: as in ContainerRequest::requests.
  std::map<std::string, double> requests;
  std::map<std::string, double> limits;  ///< of resources with a limit
  bool uses_claims = false;              ///< devices of resource claims (DRA)

  bool operator==(const PodContainer&) const = default;
};

/// The type of `container`, one of `containers`. `main` names the pod's main container; when it
/// names no app container, the first one is the main one. A sidecar among the init containers has
/// the type of other sidecars, since it runs through the pod's life.
ContainerType TypeOf(const PodContainer& container, const std::vector<PodContainer>& containers,
                     const std::string& main);

/// "Guaranteed", "Burstable" or "BestEffort": decided by CPUs and memory; ephemeral containers do
/// not count. Source: Kubernetes, "Pod Quality of Service Classes".
std::string QosClassOf(const std::vector<PodContainer>& containers);

}  // namespace qrm
