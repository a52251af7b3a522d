// The document behind the page: the node as it is now, as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "checkpoint/node_state.h"
#include "manager/control/control_answers.h"
#include "manager/observability/node_status.h"
#include "manager/registry/plugin_info.h"
#include "topology/machine.h"

namespace qrm::manager {

/// More are counted, not listed.
inline constexpr std::size_t kMostPageContainers = 2000;

/// What the page shows; all but the decisions is as it is now.
struct PageSources {
  const std::string& node_name;
  const checkpoint::NodeState& state;
  const Machine& machine;
  const NodeStatus& status;
  std::vector<PluginInfo> plugins;
  const std::string& latest_decisions;  ///< a JSON list
  RemarksSource remarks_of;
};

/// A JSON object that is the same as long as nothing changes: no ages, no counts of runs.
/// Text of pods and plugins is cut, and free of control characters. Cost: O(containers + CPUs).
std::string PageDocument(const PageSources& sources);

}  // namespace qrm::manager
