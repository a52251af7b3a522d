// A pod's spec from any source: the requests of its containers, and their start order.
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
  /// The UID under which kubelet runs the pod, if `uid` is that of a static pod's mirror; else
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

/// The parts of a spec as text, unchecked.
struct PodManifest {
  struct Resources {
    StringMap requests;
    StringMap limits;
    bool has_claims = false;
  };
  struct Container {
    std::string name;
    std::string restart_policy;  ///< of an init container: "Always" for a sidecar
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

/// The checked spec. Pod-level resources count for the QoS class only: like kubelet's CPU and
/// memory managers, it does not divide them among containers.
/// Errors: kInvalidArgument naming the pod, what is missing or wrong, and its value.
/// Source: Kubernetes, "Pod Quality of Service Classes"; kubelet's annotations
/// kubernetes.io/config.hash and kubernetes.io/config.mirror.
StatusOr<PodSpec> ReadManifest(const PodManifest& manifest);

/// `estimate` with the data of its container in `spec`, and with the pod's other containers, which
/// are admitted together with it. An init container that kubelet restarts is a sidecar. Without a
/// named main container, the first app container is the main one. Absent if the spec has no such
/// container.
std::optional<placement::ContainerDemand> Refine(const placement::ContainerDemand& estimate,
                                                 const PodSpec& spec,
                                                 const std::string& main_container,
                                                 const std::string& source);

/// The spec in a serialized k8s.io.api.core.v1.Pod. Errors: kInvalidArgument for bytes that are not
/// a pod, else as ReadManifest.
StatusOr<PodSpec> ParsePodMessage(const std::string& bytes);

/// The UID in the message, which is all that the message of a deleted pod has. Also reads it if the
/// rest is not a valid pod; empty without a UID.
std::string UidOfPodMessage(const std::string& bytes);

}  // namespace qrm::manager
