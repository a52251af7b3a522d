// What the author of an extended resource writes: how pods use it, and whether one more fits.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/base/status.h"
#include "scheduler/cache/objects.h"

namespace qrm::scheduler {

/// What a resource says to a pod. Units: the resource's own.
struct Admission {
  double requested = 0;
  double available = 0;
  /// Why the pod does not fit when the numbers do not show it: a sentence without numbers and names
  /// of nodes, because the scheduler counts equal sentences.
  std::string refusal;

  /// A pod that requests nothing fits also where pods use more than there is.
  bool Fits() const { return refusal.empty() && (requested <= 0 || requested <= available); }
};

/// One resource of one node: what the node has of it, less what the node's pods use.
/// It depends on the set of its pods only, not on the order in which they came; so a cache that was
/// rebuilt is like one that lived on: count in whole numbers, since sums of fractions depend on
/// their order. Source: KEP-4187, ExtendedResource.
///
/// Threads: changed by the cache's writer only; const calls from any thread at once.
class ExtendedResource {
 public:
  virtual ~ExtendedResource() = default;

  /// `pod` uses the node from now on. Called once for each of the node's pods.
  virtual void AddPod(const Pod& pod) = 0;
  /// It does not any more; `pod` is what AddPod was given.
  virtual void RemovePod(const Pod& pod) = 0;

  /// Whether `pod`, which is not on the node, fits now.
  virtual Admission AdmitPod(const Pod& pod) const = 0;

  /// How good a place this is for a pod that fits: 0 to 100, more is better; absent where the
  /// resource does not care, which is the default.
  virtual std::optional<int> Score(const Pod& /*pod*/) const { return std::nullopt; }

  /// What is decided for a pod that comes here, as annotations. They are written on the pod with
  /// its binding, and AddPod then finds them there. Errors: kResourceExhausted as AdmitPod.
  virtual StatusOr<StringMap> Decide(const Pod& /*pod*/) const { return StringMap(); }

  /// A copy that shares nothing that changes: snapshots keep one while the other goes on.
  virtual std::unique_ptr<ExtendedResource> Clone() const = 0;

  /// All that matters, the same text for the same state.
  virtual nlohmann::json Dump() const = 0;
};

}  // namespace qrm::scheduler
