// Derives the mode: NRI where it is attached, else the observer.
#include "manager/pods/runtime_mode.h"

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

}  // namespace qrm::manager
