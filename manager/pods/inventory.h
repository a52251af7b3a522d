// Takes the runtime's complete lists, from NRI or CRI.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "manager/pods/ended_pods.h"
#include "manager/pods/node_parts.h"
#include "manager/pods/observer.h"
#include "manager/pods/pod_placer.h"
#include "manager/pods/sync_audit.h"

namespace qrm::manager {

/// Replaces what is known of live containers by what the runtime lists, gives the placer those that
/// started without us, and finds what has ended. A list of another runtime than NRI tells of ends
/// nothing.
///
/// Threads: the I/O loop, but for `contradiction`.
class Inventory final : public ObservationListener {
 public:
  /// All outlive the inventory.
  Inventory(const NodeParts& parts, PodPlacer& placer, EndedPods& ended)
      : parts_(parts), placer_(placer), ended_(ended) {}

  /// What NRI tells of everything that exists. False when it leaves out what CRI told of: CRI's
  /// lists show whether that is still there.
  bool OnSynchronized(std::vector<RuntimePod> pods, std::vector<RuntimeContainer> containers);
  /// What CRI showed while NRI is away.
  void OnObserved(Observation seen) override;
  /// What CRI lists while NRI tells of changes: makes up for events that did not come. What is
  /// missing may only be newer than the list: another one has to confirm it.
  ListVerdict OnListed(const RuntimeList& list);

  /// A container that CRI lists and NRI does not tell of. It has its resources.
  void OnLeftOutAgain(const RuntimePod& pod, RuntimeContainer container);

  /// How NRI and CRI contradict each other since two lists in a row, as one sentence; empty when
  /// they do not. Threads: any.
  std::string contradiction() const {
    const MutexLock lock(mutex_);
    return contradiction_;
  }

 private:
  bool FindRemovedContainers(const std::vector<RuntimeContainer>& containers);
  void Forget(const ContainerKey& key, const std::string& id);
  ListVerdict NoteUnknownToCri(const std::set<std::string>& pods);

  const NodeParts& parts_;
  PodPlacer& placer_;
  EndedPods& ended_;
  std::set<std::string> missing_;  // ids of containers, in the latest list
  bool contradicted_ = false;      // by the latest list

  mutable Mutex mutex_;
  std::string contradiction_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
