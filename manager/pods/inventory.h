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

/// Replaces the table of live containers by the runtime's lists, passes containers that started
/// without qrmd to the placer, and finds those that have ended. A list of another runtime than
/// NRI's proves no end.
///
/// Threads: the I/O loop, except for `contradiction`.
class Inventory final : public ObservationListener {
 public:
  /// All outlive the inventory.
  Inventory(const NodeParts& parts, PodPlacer& placer, EndedPods& ended)
      : parts_(parts), placer_(placer), ended_(ended) {}

  /// All that exists, by NRI. False when it leaves out containers that CRI reported: CRI's lists
  /// will show whether they still exist.
  bool OnSynchronized(std::vector<RuntimePod> pods, std::vector<RuntimeContainer> containers);
  /// All that exists, by CRI while NRI is not available.
  void OnObserved(Observation seen) override;
  /// CRI's lists beside NRI's events: replaces events that were lost. What is missing may only be
  /// newer than the list: another list has to confirm it.
  ListVerdict OnListed(const RuntimeList& list);

  /// A container that CRI lists and NRI does not report, with its resources.
  void OnLeftOutAgain(const RuntimePod& pod, RuntimeContainer container);

  /// How NRI and CRI have contradicted each other in two lists in a row, as one sentence; empty
  /// when they agree. Threads: any.
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
  std::set<std::string> missing_;  // ids of containers that the latest list did not have
  bool contradicted_ = false;      // by the latest list

  mutable Mutex mutex_;
  std::string contradiction_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
