// The specs of pods that are created over CRI without kubelet, announced to qrmd before.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "manager/demand/spec_source.h"

namespace qrm::manager {

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
