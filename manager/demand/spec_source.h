// The interface of a source that knows the specs of the node's pods.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "api/base/clock.h"
#include "manager/demand/pod_spec.h"

namespace qrm::manager {

/// Threads: any. None of the functions waits.
class SpecSource {
 public:
  virtual ~SpecSource() = default;

  /// What demands by its specs are marked with: "pods-api", "kubelet", "announced".
  virtual std::string name() const = 0;
  /// Whether it can look for a pod that it does not know; as long as the object.
  virtual bool can_look() const { return true; }
  /// What it knows now; null when unknown.
  virtual PodSpecPtr Find(const std::string& uid) const = 0;
  /// The same of the mirror of the static pod that kubelet runs under `static_uid`. Anybody who may
  /// make pods can write the annotations of a mirror, but in its own namespace and name only.
  virtual PodSpecPtr FindMirror(const std::string& /*static_uid*/,
                                const std::string& /*pod_namespace*/,
                                const std::string& /*name*/) const {
    return nullptr;
  }
  /// Grows with each spec that is new, changed or gone.
  virtual uint64_t revision() const = 0;
  /// Begins to look for a pod that is not known, or has changed; does nothing when it cannot be
  /// asked.
  virtual void Prefetch(const std::string& uid) = 0;
  /// Runs `done` once the looking for the pod has ended: at once when nobody looks, else on any
  /// thread, where it must only post. It may be dropped when that is not before `deadline`.
  virtual void AfterLooking(const std::string& uid, Deadline deadline,
                            std::function<void()> done) = 0;
};

}  // namespace qrm::manager
