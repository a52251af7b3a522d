// A pod as its spec has it, from whatever source: what its containers request, and in which order
// they start.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/pod_container.h"
#include "api/resource.h"
#include "manager/demand/demand_source.h"

namespace qrm::manager {

/// One pod.
struct PodSpec {
  std::string uid;
  /// The UID under which kubelet runs the pod, when `uid` is that of a static pod's mirror; else
  /// empty.
  std::string static_uid;
  std::string pod_namespace;
  std::string name;
  std::string qos_class;
  std::string controller_kind;  ///< such as "DaemonSet"; empty without a controller
  std::string priority_class;
  std::optional<int> priority;
  std::string runtime_class;
  std::vector<PodContainer> containers;  ///< init, then app, then ephemeral ones

  bool operator==(const PodSpec&) const = default;
};

using PodSpecPtr = std::shared_ptr<const PodSpec>;

/// A spec's parts before they are checked, as text.
struct PodManifest {
  struct Resources {
    StringMap requests;
    StringMap limits;
  };
  struct Container {
    std::string name;
    std::string restart_policy;  ///< of init containers: "Always" for those that keep running
    Resources resources;
  };

  std::string uid;
  std::string pod_namespace;
  std::string name;
  StringMap annotations;
  std::string controller_kind;
  std::string priority_class;
  std::optional<int> priority;
  std::string runtime_class;
  std::vector<Container> init_containers;
  std::vector<Container> containers;
  std::vector<Container> ephemeral_containers;
  Resources resources;  ///< of the pod as a whole
};

/// The checked form. Resources of the pod as a whole count for the QoS class only: they are not
/// divided among containers, as kubelet's CPU and memory managers do not divide them either.
/// Errors: kInvalidArgument naming the pod, what is missing or wrong, and its value.
/// Source: Kubernetes, "Pod Quality of Service Classes"; kubelet's annotations
/// kubernetes.io/config.hash and kubernetes.io/config.mirror.
StatusOr<PodSpec> ReadManifest(const PodManifest& manifest);

/// `estimate` with what `spec` says of its container, and with the pod's other containers, which
/// are admitted together with it. A container that kubelet restarts through the pod's life is a
/// sidecar, also one of the init containers; without a named main container, the first is the main
/// one. Absent when the spec has no such container.
std::optional<placement::ContainerDemand> Refine(const placement::ContainerDemand& estimate,
                                                 const PodSpec& spec,
                                                 const std::string& main_container,
                                                 const std::string& source);

}  // namespace qrm::manager
