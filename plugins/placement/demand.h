// What one container asks of the node: what the walk turns into requests to plugins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/id_set.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"

namespace qrm::placement {

/// What a running container was created with, as far as the runtime reports it.
struct MadeWith {
  std::vector<std::string> env;  ///< "KEY=value"
  StringMap annotations;
  std::vector<std::string> mount_paths;
  std::vector<std::string> device_paths;
};

/// What one container asks of the node, and as what.
struct ContainerDemand {
  checkpoint::PodMeta pod;
  SharedText container;
  ContainerType type = ContainerType::kMain;
  uint64_t index = 0;
  bool restartable_init = false;  ///< a sidecar among the pod's init containers
  /// By the names the pod uses. Units: as in ContainerRequest::requests; amounts are above zero.
  Shared<std::map<std::string, double>> requests;
  Shared<std::map<std::string, double>> limits;  ///< of the requests whose limit is known
  /// Where `requests` came from: "pods-api", "kubelet", "announced" or "estimate".
  std::string source;
  SharedText runtime_id;  ///< the runtime's of this container; empty before its creation
  std::string runtime_class;
  /// The CPUs and memory nodes that the runtime confines the container to, as far as it reports
  /// them.
  CpuSet cpus;
  NumaMask mems;
  MadeWith made_with;           ///< of a container that exists
  std::string controller_kind;  ///< such as "DaemonSet"; empty when unknown or without
  std::string priority_class;   ///< empty when unknown or without
  std::string role_key;         ///< what names the pod's role: "label KEY"; empty: unknown

  /// The pod's other containers, in the order in which they start; empty when the pod's spec is not
  /// known. Their own `others` are empty.
  std::vector<ContainerDemand> others;
  std::size_t place = 0;  ///< how many of `others` start before this one

  ContainerKey key() const { return {pod.uid, container}; }
};

}  // namespace qrm::placement
