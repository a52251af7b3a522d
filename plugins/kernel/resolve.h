// Computes file values from classes of CPUs: values in, values out.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "plugins/kernel/claim.h"
#include "plugins/kernel/tunable_machine.h"
#include "plugins/kernel/tuning_profile.h"

namespace qrm::kernel {

/// Classes by their names.
using ClassNames = std::set<std::string>;

/// A value to set, and the classes that request it.
struct TunedFile {
  Claim claim;
  ClassNames classes;
};

/// A request of classes that is not in effect, in one sentence.
struct TuningProblem {
  ClassNames classes;
  std::string text;

  bool operator==(const TuningProblem&) const = default;
};

/// The result of a plan on a machine.
struct Resolved {
  std::vector<TunedFile> files;  ///< in the order of writing
  std::vector<TuningProblem> problems;
};

/// The values for `plan`. CPUs that share a file get one value: the highest frequency bounds and
/// the fastest governor and preference that any class requests. Power saving by one class does not
/// change CPUs without a class. Values that CPUs in `plan.foreign` share are left out, and
/// interrupts too if there are such CPUs. Cost: O(CPUs + interrupts).
Resolved Resolve(const TuningPlan& plan, const TunableMachine& machine);

/// Whether `plan` has a rule for interrupts.
bool WantsQuiet(const TuningPlan& plan);

}  // namespace qrm::kernel
