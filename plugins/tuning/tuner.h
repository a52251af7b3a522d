// Who sets what classes of CPUs ask for.
#pragma once

#include <string>

#include "plugins/tuning/cpu_class.h"

namespace qrm::tuning {

/// Threads: one at a time.
class Tuner {
 public:
  virtual ~Tuner() = default;

  /// Has the machine be as `plan` says, soon; what it no longer says is put back. To be called with
  /// the same plan now and then, which repairs what others changed. Returns at once.
  virtual void Tune(const TuningPlan& plan) = 0;

  /// Why CPUs of class `name` are not as they are to be, in one sentence; empty: they are, or will
  /// be soon.
  virtual std::string ProblemOf(const std::string& name) const = 0;
};

}  // namespace qrm::tuning
