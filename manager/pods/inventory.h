// Takes the runtime's complete lists, from NRI or CRI.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "manager/pods/ended_pods.h"
#include "manager/pods/node_parts.h"
#include "manager/pods/observer.h"
#include "manager/pods/pod_placer.h"

namespace qrm::manager {

/// Replaces what is known of live containers by what the runtime lists, gives the placer those that
/// started without us, and finds what has ended.
///
/// Threads: the I/O loop.
class Inventory final : public ObservationListener {
 public:
  /// All outlive the inventory.
  Inventory(const NodeParts& parts, PodPlacer& placer, EndedPods& ended)
      : parts_(parts), placer_(placer), ended_(ended) {}

  /// What NRI tells of everything that exists.
  void OnSynchronized(std::vector<RuntimePod> pods, std::vector<RuntimeContainer> containers);
  /// What CRI showed while NRI is away.
  void OnObserved(Observation seen) override;
  /// What CRI lists while NRI tells of changes: makes up for events that did not come. False when
  /// something is missing that may only be newer than the list.
  bool OnListed(const RuntimeList& list);

 private:
  bool FindRemovedContainers(const std::vector<RuntimeContainer>& containers);
  void Forget(const ContainerKey& key, const std::string& id);

  const NodeParts& parts_;
  PodPlacer& placer_;
  EndedPods& ended_;
  std::set<std::string> missing_;  // ids of containers, in the latest list
};

}  // namespace qrm::manager
