// The node as a NodeResourceTopology: what each NUMA node has, may give and has left.
#pragma once

#include <string>

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
  const AllocatableByResource& allocatable;  ///< as the plugins tell
  TopologyPolicy policy = TopologyPolicy::kNone;
  TopologyScope scope = TopologyScope::kContainer;
};

/// `zones` and `attributes` of the object. `available` is what no container has for itself: CPUs
/// that are shared count as available, as with other writers of these objects. Nodes beyond 63 are
/// left out, for readers end at one.
/// Source: topology.node.k8s.io/v1alpha2; resource-topology-exporter.
nlohmann::json NodeTopologyOf(const TopologyView& view);

/// An amount as Kubernetes writes it, in thousandths where it is not whole: "4", "1500m".
std::string AmountText(double amount);

}  // namespace qrm::manager
