// Sends container updates to the runtime, a few at a time, and notes their results.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "manager/reconcile/drift.h"
#include "manager/reconcile/plan.h"
#include "manager/runtime/cri/cri_client.h"

namespace qrm::manager {

/// The outcome of one update.
struct UpdateResult {
  PlannedUpdate update;
  Status status;
};

/// Sends `updates` in their order, `concurrency` at a time. Updates that grow are sent only after
/// all others have been answered. `done` gets all results, once. The wait for an update is bounded
/// by `runtime`'s own deadline.
///
/// Threads: the I/O loop; `runtime` outlives the calls.
void RunUpdates(ContainerRuntime& runtime, std::vector<PlannedUpdate> updates,
                std::size_t concurrency, std::function<void(std::vector<UpdateResult>)> done);

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
