// The specs of pods that somebody makes over CRI, and told qrmd before.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "manager/demand/spec_source.h"

namespace qrm::manager {

/// Knows the latest pods that were announced, and looks for none.
///
/// Threads: any.
class AnnouncedPods final : public SpecSource {
 public:
  /// One who tries pods has a few of them at a time.
  static constexpr std::size_t kMaxPods = 64;

  /// Takes the place of an earlier one with its UID; the oldest of more than kMaxPods is forgotten.
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
