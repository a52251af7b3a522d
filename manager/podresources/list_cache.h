// Caches the encoded List answer, and encodes only pods that have changed.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "checkpoint/node_state.h"
#include "manager/podresources/kubelet_view.h"
#include "manager/podresources/pod_resources_answers.h"
#include "topology/machine.h"

namespace qrm::manager {

/// Threads: any.
class ListCache {
 public:
  using StatePtr = std::shared_ptr<const checkpoint::NodeState>;
  using KubeletPtr = std::shared_ptr<const KubeletView>;
  using SteadyTime = std::chrono::steady_clock::time_point;
  using PodPtrs = std::vector<const checkpoint::PodRecord*>;

  /// The pods, of the answered state, that plugins should be asked about now.
  struct ToAsk {
    PodPtrs changed;  ///< pods that are new or have changed: every plugin
    PodPtrs others;   ///< the rest: the plugins of `resources`
    std::set<std::string> resources;
  };

  /// `machine` outlives the cache. Of pods' annotations, answers have only `annotations`.
  explicit ListCache(const Machine& machine, std::set<std::string> annotations = {})
      : machine_(machine), annotations_(std::move(annotations)) {}

  /// ListAnswer(*state, machine, *kubelet) with the plugins' reports and only those annotations,
  /// serialized. A caller that passes `to_ask` has to ask. Cost: nothing for the state and the view
  /// of the last call; else a copy of the bytes of pods that are the same in both, and an encoding
  /// of the others.
  std::shared_ptr<const std::string> Answer(const StatePtr& state, const KubeletPtr& kubelet,
                                            ToAsk* to_ask = nullptr);

  /// Adds a plugin's report about a container of `pod`, which the caller keeps alive, to the next
  /// answer. Does nothing when the pod has changed since.
  void Tell(const checkpoint::PodRecord& pod, const std::string& container,
            const PlacedByResource& placed);

  /// At or after `when`, the first Answer with `to_ask` makes its caller ask the plugin of
  /// `resource` about all pods.
  void AskAgain(const std::string& resource, SteadyTime when);

  /// The plugins' reports about `pod`; null when there is none.
  std::shared_ptr<const PodPlacements> PlacementsOf(const checkpoint::PodRecord& pod) const;

 private:
  struct Kept {
    std::size_t offset = 0;
    std::size_t size = 0;
    std::shared_ptr<const PodPlacements> placements;
    bool stale = false;  ///< the bytes do not have these placements yet
  };
  /// Records are immutable and `state_` keeps them alive: the same address is the same record.
  using KeptByPod = std::unordered_map<const checkpoint::PodRecord*, Kept>;
  struct Encoder;

  std::set<std::string> TakeDue() QRM_REQUIRES(mutex_);
  bool IsSame(const checkpoint::PodRecord& pod, const Kept& known, const KubeletPtr& kubelet) const
      QRM_REQUIRES(mutex_);
  KeptByPod Encode(const checkpoint::NodeState& state, const KubeletPtr& kubelet, Encoder& encoder,
                   ToAsk& to_ask) const QRM_REQUIRES(mutex_);

  const Machine& machine_;
  const std::set<std::string> annotations_;
  mutable Mutex mutex_;
  StatePtr state_ QRM_GUARDED_BY(mutex_);
  KubeletPtr kubelet_ QRM_GUARDED_BY(mutex_);
  std::shared_ptr<const std::string> bytes_ QRM_GUARDED_BY(mutex_);
  KeptByPod kept_ QRM_GUARDED_BY(mutex_);
  bool told_ QRM_GUARDED_BY(mutex_) = false;  ///< some of `kept_` is stale
  std::map<std::string, SteadyTime> ask_again_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
