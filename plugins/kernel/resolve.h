// Computes file values from profiles of CPUs: values in, values out.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "plugins/kernel/claim.h"
#include "plugins/kernel/tunable_machine.h"
#include "plugins/kernel/tuning_profile.h"

namespace qrm::kernel {

/// Classes by their names.
using ProfileNames = std::set<std::string>;

/// A value to set, and the profiles that request it.
struct TunedFile {
  Claim claim;
  ProfileNames profiles;
};

/// A request of profiles that is not in effect, in one sentence.
struct TuningProblem {
  ProfileNames profiles;
  std::string text;

  bool operator==(const TuningProblem&) const = default;
};

/// The result of a plan on a machine.
struct Resolved {
  std::vector<TunedFile> files;  ///< in the order of writing
  std::vector<TuningProblem> problems;
};

/// The values for `plan`. CPUs that share a file get one value: the highest frequency bounds and
/// the fastest governor and preference that any profile requests. Power saving by one profile does
/// not change CPUs without a profile. Values that CPUs in `plan.foreign` share are left out, and
/// interrupts too if there are such CPUs. Cost: O(CPUs + interrupts).
Resolved Resolve(const TuningPlan& plan, const TunableMachine& machine);

/// Whether `plan` has a rule for interrupts.
bool WantsQuiet(const TuningPlan& plan);

}  // namespace qrm::kernel
