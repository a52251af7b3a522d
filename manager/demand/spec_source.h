// The interface of a source that knows the specs of the node's pods, and the source of announced
// pods.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "manager/demand/pod_spec.h"

namespace qrm::manager {

/// Threads: any. None of the functions waits.
class SpecSource {
 public:
  virtual ~SpecSource() = default;

  /// ContainerDemand::source of demands from its specs: "pods-api", "kubelet", "announced".
  virtual std::string name() const = 0;
  /// Whether it can look for a pod that it does not know; constant for each object.
  virtual bool can_look() const { return true; }
  /// The spec that it knows now; null if unknown.
  virtual PodSpecPtr Find(const std::string& uid) const = 0;
  /// The same of the mirror of the static pod that kubelet runs under `static_uid`. Namespace and
  /// name must match: any author of pods can write a mirror's annotations, but only on own pods.
  virtual PodSpecPtr FindMirror(const std::string& /*static_uid*/,
                                const std::string& /*pod_namespace*/,
                                const std::string& /*name*/) const {
    return nullptr;
  }
  /// Grows with each new, changed or removed spec.
  virtual uint64_t revision() const = 0;
  /// Starts to look for a pod that is unknown or has changed; does nothing if the source cannot
  /// look.
  virtual void Prefetch(const std::string& uid) = 0;
  /// Runs `done` when the lookup of the pod has ended: at once if there is none, else on any
  /// thread, where it must only post. `done` may be dropped if the lookup ends after `deadline`.
  virtual void AfterLooking(const std::string& uid, Deadline deadline,
                            std::function<void()> done) = 0;
};

/// Keeps the latest announced pods; does not look for others.
///
/// Threads: any.
class AnnouncedPods final : public SpecSource {
 public:
  /// Enough for trials, which run a few pods at a time.
  static constexpr std::size_t kMaxPods = 64;

  /// Replaces an earlier spec of the same UID; beyond kMaxPods, the oldest is dropped.
  void Add(PodSpec spec);

  std::string name() const override { return "announced"; }
  bool can_look() const override { return false; }
  PodSpecPtr Find(const std::string& uid) const override;
  uint64_t revision() const override;
  void Prefetch(const std::string& /*uid*/) override {}
  void AfterLooking(const std::string& /*uid*/, Deadline /*deadline*/,
                    std::function<void()> done) override {
    done();
  }

 private:
  mutable Mutex mutex_;
  std::vector<PodSpecPtr> pods_ QRM_GUARDED_BY(mutex_);  // by age
  uint64_t revision_ QRM_GUARDED_BY(mutex_) = 0;
};

}  // namespace qrm::manager
