// Somebody who knows the specs of the node's pods.
#pragma once

#include <string>

#include "api/base/clock.h"
#include "manager/demand/pod_spec.h"

namespace qrm::manager {

/// Threads: any.
class SpecSource {
 public:
  virtual ~SpecSource() = default;

  /// What demands by its specs are marked with: "pods-api", "kubelet".
  virtual std::string name() const = 0;
  /// What it knows now; null when unknown. Never waits.
  virtual PodSpecPtr Find(const std::string& uid) const = 0;
  /// Begins to look for a pod that is not known, or has changed; does nothing when it cannot be
  /// asked. Never waits.
  virtual void Prefetch(const std::string& uid) = 0;
  /// The spec, once the looking has ended; null when it is still unknown then, or at `deadline`.
  virtual PodSpecPtr Await(const std::string& uid, Deadline deadline) const = 0;
};

}  // namespace qrm::manager
