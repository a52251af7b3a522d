// Derives the mode: NRI where it is attached, else the observer.
#include "manager/pods/runtime_mode.h"

#include <fmt/format.h>

namespace qrm::manager {

void AddRuntimeMode(const NriStatus& nri, const ObserverStatus& observer, RuntimeStatus& status) {
  if (nri.connected) {
    status.mode = RuntimeMode::kNri;
  } else if (observer.working) {
    status.mode = RuntimeMode::kObserver;
    status.degraded_reasons.push_back(
        "containers are pinned after their creation, by updates over CRI: " + nri.problem);
  } else {
    status.not_ready_reasons.push_back("not attached to the container runtime: " + nri.problem);
    if (!observer.problem.empty()) {
      status.not_ready_reasons.push_back("not following it over CRI either: " + observer.problem);
    }
  }
}

// An answer from before the latest synchronization may be of a runtime that was replaced since.
void AddCriFaults(const NriStatus& nri, const CriStatus& cri, RuntimeStatus& status) {
  if (!nri.connected || !cri.asked_at.has_value()) {
    return;
  }
  if (!cri.problem.empty()) {
    status.degraded_reasons.push_back("updates of running containers do not reach the runtime: " +
                                      cri.problem);
  } else if (cri.runtime != nri.runtime && nri.last_sync.has_value() &&
             *cri.asked_at > *nri.last_sync) {
    status.degraded_reasons.push_back(fmt::format(
        "updates of running containers do not reach the runtime: NRI is connected to {} {}, and "
        "{} {} answers over CRI; set cri-socket and nri-socket to sockets of one runtime, the one "
        "that kubelet uses",
        nri.runtime.name, nri.runtime.version, cri.runtime.name, cri.runtime.version));
  }
}

}  // namespace qrm::manager
