// Examples 1 to 3 of the QoS Resource Manager proposal, played on its 80-CPU machine with a
// simulated runtime.
#pragma once

#include <string>

#include "api/base/status.h"

namespace qrm::test {

struct ExamplesOptions {
  std::string bin_dir;
  std::string samples_dir;  ///< docs/samples: example1 ... example3
  std::string work_dir;
  std::string reconcile_period = "3s";
};

/// Prints the values of every pod. Errors: the first difference from the proposal.
Status PlayExamples(const ExamplesOptions& options);

}  // namespace qrm::test
