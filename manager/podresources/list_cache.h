// The List answer as bytes, kept until the state changes and then made anew only where it did.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>

#include "api/mutex.h"
#include "checkpoint/node_state.h"
#include "manager/podresources/kubelet_view.h"
#include "topology/machine.h"

namespace qrm::manager {

/// Threads: any.
class ListCache {
 public:
  /// `machine` outlives the cache.
  explicit ListCache(const Machine& machine) : machine_(machine) {}

  /// ListAnswer(*state, machine, *kubelet), serialized. Cost: nothing for the state and the view of
  /// the last call; else a copy of the bytes of pods that are the same in both, and an encoding of
  /// the others.
  std::shared_ptr<const std::string> Answer(
      const std::shared_ptr<const checkpoint::NodeState>& state,
      const std::shared_ptr<const KubeletView>& kubelet);

 private:
  struct Span {
    std::size_t offset = 0;
    std::size_t size = 0;
  };
  /// Records are immutable and `state_` keeps them alive: the same address is the same record.
  using SpanByPod = std::unordered_map<const checkpoint::PodRecord*, Span>;

  const Machine& machine_;
  Mutex mutex_;
  std::shared_ptr<const checkpoint::NodeState> state_ QRM_GUARDED_BY(mutex_);
  std::shared_ptr<const KubeletView> kubelet_ QRM_GUARDED_BY(mutex_);
  std::shared_ptr<const std::string> bytes_ QRM_GUARDED_BY(mutex_);
  SpanByPod spans_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
