// The node as a NodeResourceTopology: capacity, allocatable and available resources by NUMA node.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "api/resource.h"
#include "checkpoint/node_state.h"
#include "topology/machine.h"
#include "topology/merge.h"

namespace qrm::manager {

inline constexpr char kTopologiesPath[] =
    "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies";

struct TopologyView {
  const checkpoint::NodeState& state;
  const Machine& machine;
  const AllocatableByResource& allocatable;  ///< as reported by the plugins
  TopologyPolicy policy = TopologyPolicy::kNone;
  TopologyScope scope = TopologyScope::kContainer;
};

/// `zones` and `attributes` of the object. `available` excludes only exclusive allocations: shared
/// CPUs count as available, as with other writers of these objects. Nodes above 63 are omitted,
/// because readers stop at such a node.
/// Source: topology.node.k8s.io/v1alpha2; resource-topology-exporter.
nlohmann::json NodeTopologyOf(const TopologyView& view);

/// For the fingerprint by which readers check which pods the object counts.
struct PodName {
  std::string pod_namespace;
  std::string name;
};

/// The fingerprint of `pods`, in any order: "pfp0v001" and 16 hexadecimal digits.
/// Source: k8stopologyawareschedwg/podfingerprint, version v001.
std::string PodsFingerprint(const std::vector<PodName>& pods);

/// XXH64: equal on all machines and after restarts.
uint64_t HashOf(std::string_view bytes, uint64_t seed = 0);

/// An amount as a Kubernetes quantity, in thousandths if it is not whole: "4", "1500m".
std::string AmountText(double amount);

}  // namespace qrm::manager
