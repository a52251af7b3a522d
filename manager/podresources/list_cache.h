// Caches the encoded List answer, and what plugins reported about the listed pods.
#pragma once

#include <chrono>
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
  using Reports = std::shared_ptr<const PodPlacements>;

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
  /// serialized. A caller that passes `to_ask` has to ask. Cost: nothing while nothing has changed;
  /// else an encoding of all pods.
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
  Reports PlacementsOf(const checkpoint::PodRecord& pod) const;

 private:
  /// Records are immutable and `state_` keeps them alive: the same address is the same record.
  using ReportsByPod = std::unordered_map<const checkpoint::PodRecord*, Reports>;

  std::set<std::string> TakeDue() QRM_REQUIRES(mutex_);

  const Machine& machine_;
  const std::set<std::string> annotations_;
  mutable Mutex mutex_;
  StatePtr state_ QRM_GUARDED_BY(mutex_);
  KubeletPtr kubelet_ QRM_GUARDED_BY(mutex_);
  std::shared_ptr<const std::string> bytes_ QRM_GUARDED_BY(mutex_);  ///< null: to be made
  ReportsByPod reports_ QRM_GUARDED_BY(mutex_);
  std::map<std::string, SteadyTime> ask_again_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
