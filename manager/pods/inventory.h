// Takes the runtime's complete lists, from NRI or CRI.
#pragma once

#include <vector>

#include "manager/pods/node_parts.h"
#include "manager/pods/observer.h"
#include "manager/pods/pod_placer.h"

namespace qrm::manager {

/// Replaces what is known of live containers by what the runtime lists, and gives the placer those
/// that started without us.
///
/// Threads: the I/O loop.
class Inventory final : public ObservationListener {
 public:
  /// Both outlive the inventory.
  Inventory(const NodeParts& parts, PodPlacer& placer) : parts_(parts), placer_(placer) {}

  /// What NRI tells of everything that exists.
  void OnSynchronized(const std::vector<RuntimePod>& pods,
                      std::vector<RuntimeContainer> containers);
  /// What CRI showed while NRI is away.
  void OnObserved(Observation seen) override;

 private:
  const NodeParts& parts_;
  PodPlacer& placer_;
};

}  // namespace qrm::manager
