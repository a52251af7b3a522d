// Turns the results of updates into changes of the state and problems.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "checkpoint/node_state.h"
#include "manager/reconcile/drift.h"
#include "manager/reconcile/update_runner.h"

namespace qrm::manager {

/// The outcome of a batch of updates.
struct UpdateNotes {
  checkpoint::Change change;          ///< the containers' current values, as far as known
  std::vector<ContainerKey> updated;  ///< containers that have their new values
  std::vector<std::string> problems;  ///< one sentence each
  std::size_t taken = 0;              ///< updates that the runtime accepted
};

/// Judges `results` for containers in `state`; `drift` reads the values back. A container that
/// ended, was removed, or lost CPUs meanwhile is not a problem. If it lost CPUs, it is updated
/// again.
UpdateNotes NoteResults(const std::vector<UpdateResult>& results,
                        const checkpoint::NodeState& state, const DriftCheck& drift,
                        const LiveContainers& live, const CpuSet& offline);

}  // namespace qrm::manager
