// From classes of CPUs to the values of files: values in, values out.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "plugins/host/claim.h"
#include "plugins/tuning/cpu_class.h"
#include "plugins/tuning/tunable_machine.h"

namespace qrm::tuning {

/// Classes by their names.
using ClassNames = std::set<std::string>;

/// A value to set, and the classes that lead to it.
struct TunedFile {
  host::Claim claim;
  ClassNames classes;
};

/// What classes ask for and do not have, in one sentence.
struct TuningProblem {
  ClassNames classes;
  std::string text;

  bool operator==(const TuningProblem&) const = default;
};

/// What a plan comes to on a machine.
struct Resolved {
  std::vector<TunedFile> files;  ///< in the order in which they are to be written
  std::vector<TuningProblem> problems;
};

/// The values for `plan`. CPUs that share a file get one value: the highest bounds of a frequency
/// and the most performing governor and preference that any of them asks for, where CPUs without a
/// class are neither slowed down nor speeded up by others' wishes to save. What CPUs of
/// `plan.foreign` share is left out, and so are interrupts while there are such CPUs. Cost: O(CPUs
/// + interrupts).
Resolved Resolve(const TuningPlan& plan, const TunableMachine& machine);

/// Whether `plan` says anything of interrupts.
bool WantsQuiet(const TuningPlan& plan);

}  // namespace qrm::tuning
