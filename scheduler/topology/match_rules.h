// The decision of the scheduler plugin NodeResourceTopologyMatch, as a pure function.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "scheduler/cache/objects.h"
#include "topology/merge.h"

namespace qrm::scheduler {

/// Amounts in a scheduler's units: CPUs in thousandths, all else whole, both rounded up.
using SchedulerAmounts = std::map<std::string, int64_t>;

/// A node, from its NodeResourceTopology and its Node.
struct MatchNode {
  bool single_numa_node = false;  ///< the policy; under others, every pod passes
  TopologyScope scope = TopologyScope::kContainer;
  std::map<int, SchedulerAmounts> zones;  ///< what is available, by id 0 to 63
  std::set<std::string> allocatable;      ///< the names in the Node's allocatable
};

/// Why `pod` does not fit: "cannot align init container", "cannot align sidecar container", "cannot
/// align container" or "cannot align pod"; empty when it does.
/// Source: scheduler-plugins, pkg/noderesourcetopology, filter.go and numaresources.go.
std::string MatchRefusal(const MatchNode& node, const Pod& pod);

/// The zones, policy and scope of a NodeResourceTopology v1alpha2. Zones of other types than Node,
/// and those whose name is not node-0 to node-63, are left out, amounts that are no quantities too.
/// Attributes win over topologyPolicies. Source: the same, nodeconfig.
MatchNode ReadMatchNode(const nlohmann::json& topology);

/// `amount` of resource `name` in a scheduler's units.
int64_t ToSchedulerUnits(const std::string& name, double amount);

}  // namespace qrm::scheduler
