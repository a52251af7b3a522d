// Where the devices are that kubelet gave a pod's containers: an annotation that the manager sets.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "api/resource.h"

namespace qrm::rules {

/// The annotation of a request's pod, set by the manager alone: what a pod's own object says under
/// this key is dropped. It is absent when kubelet told of no device with NUMA nodes.
/// Our own extension: other managers leave it absent.
inline constexpr char kDeviceNodesAnnotation[] = "qrm.io/device-nodes";

/// Extended resource, such as "nvidia.com/gpu" -> the NUMA nodes of the devices of it.
using NodesByResource = std::map<std::string, NumaMask>;
/// The same by container.
using DeviceNodes = std::map<std::string, NodesByResource>;

/// The annotation's value: a JSON object of an object for each container, whose values are the
/// nodes in kernel list form, such as {"main":{"nvidia.com/gpu":"0-1"}}.
std::string ToText(const DeviceNodes& devices);

/// What `annotations` say; empty without the annotation, and for what is no such value.
DeviceNodes ReadDeviceNodes(const StringMap& annotations);

}  // namespace qrm::rules
