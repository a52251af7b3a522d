// The page's document: the current state of the node, as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "checkpoint/node_state.h"
#include "manager/control/control_answers.h"
#include "manager/observability/node_status.h"
#include "manager/registry/plugin_info.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

/// More containers are counted, not listed.
inline constexpr std::size_t kMostPageContainers = 2000;

/// What the page shows. All except the decisions is current.
struct PageSources {
  const std::string& node_name;
  const checkpoint::NodeState& state;
  const Machine& machine;
  const NodeStatus& status;
  std::vector<PluginInfo> plugins;
  const std::string& latest_decisions;  ///< a JSON list
  RemarksSource remarks_of;
  std::vector<UnplacedContainer> unplaced;
};

/// A JSON object that is the same as long as nothing changes: no ages, no counts of runs. Text of
/// pods and plugins is cut and has no control characters. Cost: O(containers + CPUs).
std::string PageDocument(const PageSources& sources);

}  // namespace qrm::manager
