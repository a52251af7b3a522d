// Pods and nodes as the scheduler's cache keeps them: what decides about a place, and no more.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/pod_container.h"
#include "api/resource.h"

namespace qrm::scheduler {

/// Amounts by resource name. Units: CPUs for "cpu", bytes for memory, the resource's own elsewhere.
using Amounts = std::map<std::string, double>;

/// A pod. Source: Kubernetes, core/v1 Pod.
struct Pod {
  std::string uid;
  std::string pod_namespace;
  std::string name;
  std::string resource_version;
  std::string node;       ///< spec.nodeName; empty: waits for a place
  bool finished = false;  ///< phase Succeeded or Failed: it uses nothing any more
  bool refused = false;   ///< kube-scheduler has found no node for it
  bool ending = false;    ///< it is being deleted
  int priority = 0;
  bool preempts = true;   ///< it may end pods of less priority
  std::string nominated;  ///< status.nominatedNodeName: the node on which pods end for it
  std::string qos_class;  ///< "Guaranteed", "Burstable" or "BestEffort"
  std::string runtime_class;
  std::string controller_kind;  ///< such as "DaemonSet"; empty without a controller
  std::string priority_class;
  StringMap labels;
  StringMap annotations;
  std::vector<PodContainer> containers;  ///< init containers and sidecars in their order, then apps
  Amounts overhead;

  bool operator==(const Pod&) const = default;
};

using PodPtr = std::shared_ptr<const Pod>;

/// The time of the latest sign of life of a node's qrmd.
inline constexpr char kNodePublished[] = "qrm.io/published-at";

/// A node. Source: Kubernetes, core/v1 Node.
struct Node {
  std::string name;
  std::string resource_version;
  Amounts allocatable;
  StringMap labels;
  StringMap annotations;

  bool operator==(const Node&) const = default;
};

using NodePtr = std::shared_ptr<const Node>;

}  // namespace qrm::scheduler
