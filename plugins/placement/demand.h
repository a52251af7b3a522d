// What one container asks of the node: what the walk turns into requests to plugins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/hint.h"
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

/// The annotation by which a pod asks that strict policies reject it where its containers cannot be
/// near the devices of their claims; its value is kRequired. It needs no permission: it gives
/// nothing, and takes nothing from others.
inline constexpr char kClaimAlignmentAnnotation[] = "qrm.io/claim-alignment";
inline constexpr char kRequired[] = "required";

/// A device that kubelet or a DRA driver gave a container, as a provider of hints.
struct GivenDevice {
  /// One for each NUMA node that the device is near to; preferred is the one it is attached to. No
  /// preference where no node is known.
  HintList hints;
  /// Strict policies reject a container that cannot be near the device. Else, as for devices of
  /// claims that the scheduler gave without knowing of NUMA nodes, it is placed without it.
  bool binding = true;

  bool operator==(const GivenDevice&) const = default;
};

/// The requests of one container, and what plugins need to know of it.
struct ContainerDemand {
  checkpoint::PodMeta pod;
  SharedText container;
  ContainerType type = ContainerType::kMain;
  uint64_t index = 0;
  bool restartable_init = false;  ///< a sidecar among the pod's init containers
  /// By the pod's names. Units: as in ContainerRequest::requests; amounts are above zero.
  Shared<std::map<std::string, double>> requests;
  Shared<std::map<std::string, double>> limits;  ///< of the resources with a known limit
  /// The source of `requests`: "pods-api", "kubelet", "announced" or "estimate".
  std::string source;
  SharedText runtime_id;  ///< the runtime's ID of the container; empty if it does not exist yet
  std::string runtime_class;
  /// The CPUs and memory nodes that the runtime confines it to, as far as it says.
  CpuSet cpus;
  NumaMask mems;
  MadeWith made_with;           ///< of an existing container
  std::string controller_kind;  ///< such as "DaemonSet"; empty if unknown or none
  std::string priority_class;   ///< empty if unknown or none
  std::string role_key;         ///< the source of the pod's role: "label KEY"; empty: unknown
  bool uses_claims = false;     ///< by its spec, devices of resource claims (DRA)
  std::map<std::string, GivenDevice> devices;  ///< by extended resource, or "claim NAME: DEVICE"

  /// The pod's other containers, in start order; empty if the pod's spec is not known. Their
  /// `others` are empty.
  std::vector<ContainerDemand> others;
  bool has_all_others = true;  ///< unless containers of the pod were left out of `others`
  std::size_t place = 0;       ///< how many of `others` start before this one

  ContainerKey key() const { return {pod.uid, container}; }
};

}  // namespace qrm::placement
