// Which of the two ways to the runtime works, as the daemon tells it.
#pragma once

#include "manager/node_status.h"
#include "manager/pods/observer.h"
#include "manager/runtime/nri/nri_plugin.h"

namespace qrm::manager {

/// Sets `status.runtime.mode` and says what is the matter with it: the node is not ready without
/// NRI and observer, and degraded with the observer alone.
void AddRuntimeMode(const NriStatus& nri, const ObserverStatus& observer, NodeStatus& status);

}  // namespace qrm::manager
