// Annotations of a pod that only the manager sets: the NUMA nodes of its containers' devices, and
// its priority.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "api/resource.h"

namespace qrm::rules {

/// The annotation of a request's pod, which only the manager sets: a value of the pod itself is
/// dropped. Absent when kubelet reports no device with NUMA nodes.
/// An extension of qrm: other managers do not set it.
inline constexpr char kDeviceNodesAnnotation[] = "qrm.io/device-nodes";

/// Extended resource, such as "nvidia.com/gpu" -> the NUMA nodes of its devices.
using NodesByResource = std::map<std::string, NumaMask>;
/// The same by container.
using DeviceNodes = std::map<std::string, NodesByResource>;

/// The annotation's value: a JSON object with an object for each container, whose values are nodes
/// in kernel list form, such as {"main":{"nvidia.com/gpu":"0-1"}}.
std::string ToText(const DeviceNodes& devices);

/// The value in `annotations`; empty without the annotation, or if it cannot be read.
DeviceNodes ReadDeviceNodes(const StringMap& annotations);

/// qrmd sets it to a pod's `spec.priority` if it knows the spec. A value of the pod itself is
/// dropped.
inline constexpr char kPodPriorityAnnotation[] = "qrm.io/pod-priority";

}  // namespace qrm::rules
