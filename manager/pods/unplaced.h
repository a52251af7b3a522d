// Containers that run, or will, without an admission: they started without us, or nobody served
// them.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "manager/admission/admitter.h"
#include "manager/demand/demand_source.h"
#include "manager/runtime/container.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {

/// `demand` without those of the pod's other containers that exist: their values must be applied,
/// not only promised, so each is placed for itself.
ContainerDemand WithoutLive(ContainerDemand demand, const LiveContainers& live);

/// Remembers such containers and tries to admit them after the fact.
///
/// Threads: the state loop only.
class Unplaced {
 public:
  /// All outlive the object; `reconcile_soon` is called after each admission.
  struct Parts {
    StateLoop& state;
    DemandSource& source;
    Admitter& admitter;
    const LiveContainers& live;
    std::function<void()> reconcile_soon;
    std::function<bool()> stands_aside;
  };
  Unplaced(Parts parts, std::chrono::milliseconds admission_deadline);

  void Add(const RuntimePod& pod, const RuntimeContainer& container);
  void Erase(const ContainerKey& key) { containers_.erase(key); }
  void Clear() { containers_.clear(); }
  /// Forgets those that are no longer live, or live under another id.
  void EraseEnded();

  /// Tries each, one behind what was posted meanwhile, so that no creation waits for all of them,
  /// or for the spec of one.
  void TryAll();
  /// The same for those of `keys`, from the last to the first.
  void Try(std::vector<ContainerKey> keys);

 private:
  using PodAndContainer = std::pair<RuntimePod, RuntimeContainer>;

  bool IsLive(const ContainerKey& key, const RuntimeContainer& container) const;
  /// The container of `key`, if it is still to be placed.
  const PodAndContainer* Waiting(const ContainerKey& key);
  void Place(const ContainerKey& key, const StatusOr<ContainerDemand>& demand);

  const Parts parts_;
  const std::chrono::milliseconds admission_deadline_;
  std::map<ContainerKey, PodAndContainer> containers_;
};

}  // namespace qrm::manager
