// Why a container was admitted as it was, skipped, or rejected: the document behind
// `qrmctl explain`.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/hint.h"
#include "api/resource.h"
#include "manager/classes/class_choice.h"
#include "manager/demand/demand_source.h"
#include "manager/runtime/run_options.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {

/// What a compute driver was asked, and what of it is not met.
struct ExplainedDriver {
  std::string name;  ///< empty: none was asked for
  std::string by;
  std::string spec;
  std::string available;  ///< the CPUs that it was offered
  std::string fallback;   ///< why the cpu plugin placed the container instead; empty: it did not
  std::vector<sdk::UnmetWish> unmet;
};

/// What each step of one admission saw and decided, filled as the steps run.
struct Explanation {
  std::string result;              ///< "admitted", "skipped" or "rejected"
  std::string message;             ///< why, when it was not admitted: one sentence
  uint64_t equal_ones_before = 0;  ///< of which no more is kept than of this one
  std::string policy;
  bool for_pod = false;               ///< the hints are for all of the pod's containers together
  std::vector<std::string> together;  ///< the pod's containers that were placed in the same step
  std::map<std::string, double> requests;  ///< of the pod and of the configuration
  StringMap mapped;  ///< by the name the pod uses: that of the plugin, where it is another
  std::map<std::string, double> scales;  ///< of these: what one is in the plugin's unit
  std::vector<std::string> unserved;     ///< requested resources that have no plugin
  std::vector<std::string> awaited;      ///< requested resources whose plugins are away
  std::vector<std::string> kept;         ///< resources answered from the record
  /// Resources whose plugins gave what only a new one can take, and "variables of" a driver.
  std::vector<std::string> too_late;
  HintsByResource hints;
  StringMap refusals;  ///< resource -> why its plugin gave no hints
  std::map<std::string, TopologyHint> merged;
  std::vector<std::string> merge_reasons;
  AllocationByResource allocations;
  ExplainedDriver driver;
  ChosenClasses classes;
  RunOptions options;
  bool after_the_fact = false;  ///< the container was there already
  bool dry_run = false;         ///< it is not there at all: nothing was allocated or committed
  StringMap applied;            ///< OCI property -> value that it got at its creation
  /// Name and duration of each step that ran, in order; the last one failed when the result is
  /// "rejected".
  std::vector<std::pair<std::string, std::chrono::nanoseconds>> steps;
};

/// "container NAME of pod NAMESPACE/NAME".
std::string NameOf(const placement::ContainerDemand& demand);

/// {"pod":...,"container":...,"result":"admitted","requests":{"cpu":{"amount":4,"source":
/// "estimate"}},"hints":{"cpu":[{"nodes":[0],"preferred":true}]},...}; parts without content are
/// left out. A hint list is "no preference", "impossible" or "none: <why>" when it is not a list.
std::string ToJson(const Explanation& explanation, const placement::ContainerDemand& demand);

}  // namespace qrm::manager
