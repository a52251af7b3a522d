// What came of updates.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "checkpoint/node_state.h"
#include "manager/reconcile/drift.h"
#include "manager/reconcile/update_runner.h"

namespace qrm::manager {

/// What the state has to keep of updates, and what is to be told of them.
struct UpdateNotes {
  checkpoint::Change change;          ///< what containers have now, as far as it is known
  std::vector<ContainerKey> updated;  ///< those that have their new values
  std::vector<std::string> problems;  ///< one sentence each
  std::size_t taken = 0;              ///< updates that the runtime took
};

/// `results` of containers in `state`, read back by `drift`. A container that ended, was removed,
/// or lost CPUs meanwhile is no problem; of the last, the runtime is told again.
UpdateNotes NoteResults(const std::vector<UpdateResult>& results,
                        const checkpoint::NodeState& state, const DriftCheck& drift,
                        const LiveContainers& live, const CpuSet& offline);

}  // namespace qrm::manager
