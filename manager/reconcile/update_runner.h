// Sends container updates to the runtime, a few at a time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "api/base/status.h"
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

}  // namespace qrm::manager
