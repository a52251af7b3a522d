// Whether pods fit nodes, and how well, by all registered resources.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "scheduler/cache/handle.h"
#include "scheduler/cache/snapshot.h"

namespace qrm::scheduler {

/// OK when `snapshot` may be judged by. Errors: kUnavailable naming what has not been listed yet.
Status CheckSynced(const Snapshot& snapshot);

/// What a node says to a pod.
struct Refusal {
  std::string why;     ///< one sentence without numbers, which the scheduler counts; empty: it fits
  bool lasts = false;  ///< whatever pods of the node end
  double requested = 0;
  double available = 0;  ///< both 0 where amounts do not explain it
};

/// Judges nodes for one pod, by all resources and handles.
///
/// Threads: one. Cost: of a node, an AdmitPod for each type, two where the pod does not fit.
class PodJudge {
 public:
  /// All outlive it. `call`: where its thread is in authors' code.
  PodJudge(const Snapshot& snapshot, const HandleRegistry& handles, const Pod& pod,
           HandleCall& call);

  /// Whether the pod fits the node, also beside the pods of no less priority that are nominated to
  /// it. A resource that the node has not reported rejects the pods that request it, unless it is
  /// to pass.
  Refusal Judge(const std::string& node) const;
  /// The same by what the node could have.
  Refusal Ask(const NodeView& view, const Resources& resources) const;
  /// How good a place `node` is for a pod that fits: 0 to 100, the mean over the resources and
  /// handles that care; 0 when none does.
  int ScoreOf(const std::string& node) const;

 private:
  const PodData* DataOf(const std::string& type) const;

  const Snapshot& snapshot_;
  const HandleRegistry& handles_;
  const Pod& pod_;
  HandleCall& call_;
  const std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
  std::map<std::string, std::unique_ptr<const PodData>> data_;  // by type
};

/// PodJudge::Judge of one node.
Refusal JudgeNode(const Snapshot& snapshot, const HandleRegistry& handles, const Pod& pod,
                  const std::string& node);

/// The sentence of JudgeNode.
std::string RefusalOf(const Snapshot& snapshot, const HandleRegistry& handles, const Pod& pod,
                      const std::string& node);

/// A node as it would be with other pods.
///
/// Threads: one.
class WhatIf {
 public:
  /// As `snapshot`, which outlives it, has the node.
  WhatIf(const Snapshot& snapshot, const HandleRegistry& handles, const std::string& node);

  void Add(const Pod& pod) {
    Change([&](ExtendedResource& each) { each.AddPod(pod); });
  }
  void Remove(const Pod& pod) {
    Change([&](ExtendedResource& each) { each.RemovePod(pod); });
  }
  /// Adds the pods that are nominated to the node, except pods of less priority than `pod`.
  void AddNominatedBeside(const Pod& pod);
  Refusal Judge(const Pod& pod) const;

 private:
  /// What throws keeps its state, which is only supposed.
  template <typename Use>
  void Change(Use use) {
    for (const auto& [type, resource] : copies_) {
      handles_.guard().Run(type, call_, [&, &each = *resource] { use(each); });
    }
  }

  const Snapshot& snapshot_;
  const HandleRegistry& handles_;
  const std::string node_;
  NodeView view_;
  std::map<std::string, std::shared_ptr<ExtendedResource>> copies_;  // what view_ has
  mutable HandleCall call_;
};

/// PodJudge::ScoreOf without handles. Threads: any.
int ScoreOf(const Snapshot& snapshot, const Pod& pod, const std::string& node);

/// What the resources of `node` decide for `pod`, as annotations. Errors: theirs; kInternal when
/// two decide about the same annotation.
StatusOr<StringMap> DecisionOf(const Snapshot& snapshot, const HandleRegistry& handles,
                               const Pod& pod, const std::string& node);

}  // namespace qrm::scheduler
