// Tracks containers that run, or will run, without an admission: they started without us, or nobody
// served them.
#pragma once

#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "api/base/status.h"
#include "manager/demand/demand_source.h"
#include "manager/pods/node_parts.h"
#include "manager/runtime/container.h"

namespace qrm::manager {

using PodAndContainer = std::pair<RuntimePod, RuntimeContainer>;

/// `demand` without those of the pod's other containers that exist: their values must be applied,
/// not only promised, so each is placed for itself.
ContainerDemand WithoutLive(ContainerDemand demand, const LiveContainers& live);

/// Remembers such containers and tries to admit them after the fact.
///
/// Threads: the state loop only.
class Unplaced {
 public:
  /// `parts` outlive the object.
  Unplaced(const NodeParts& parts, std::chrono::milliseconds admission_deadline)
      : parts_(parts), admission_deadline_(admission_deadline) {}

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
  bool IsLive(const ContainerKey& key, const RuntimeContainer& container) const;
  /// The container of `key`, if it is still to be placed.
  const PodAndContainer* Waiting(const ContainerKey& key);
  void Place(const ContainerKey& key, const StatusOr<ContainerDemand>& demand);

  const NodeParts& parts_;
  const std::chrono::milliseconds admission_deadline_;
  std::map<ContainerKey, PodAndContainer> containers_;
};

}  // namespace qrm::manager
