// Why a container was admitted as it was, skipped, or rejected: the document behind
// `qrmctl explain`.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/hint.h"
#include "api/resource.h"
#include "manager/classes/class_choice.h"
#include "manager/demand/demand_source.h"
#include "manager/runtime/run_options.h"
#include "manager/state/pod_message.h"
#include "plugins/rules/qos_annotations.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {

/// The request to a compute driver, and the wishes that it did not meet.
struct ExplainedDriver {
  std::string name;  ///< empty: no driver was chosen
  std::string by;
  std::string spec;
  std::string available;  ///< the offered CPUs
  std::string fallback;   ///< why the cpu plugin placed the container instead; empty: it did not
  std::vector<sdk::UnmetWish> unmet;
  std::vector<std::string> warnings;  ///< of the driver about the spec
};

/// The inputs and results of each step of one admission, filled as the steps run.
struct Explanation {
  std::string result;              ///< "admitted", "skipped" or "rejected"
  std::string message;             ///< why it was rejected or skipped: one sentence
  uint64_t equal_ones_before = 0;  ///< earlier equal rejections that were not kept
  std::string policy;
  bool for_pod = false;               ///< the hints are for all of the pod's containers together
  std::vector<std::string> together;  ///< the pod's containers placed in the same admission
  std::map<std::string, double> requests;  ///< of the pod and of the configuration
  StringMap mapped;                        ///< the pod's name -> the plugin's, if they differ
  std::map<std::string, double> scales;    ///< plugin's units per unit, of the names in `mapped`
  std::vector<std::string> unserved;       ///< requested resources that have no plugin
  std::vector<std::string> awaited;        ///< requested resources whose plugins are not running
  std::vector<std::string> kept;           ///< resources answered from the record
  /// Resources whose allocation only a new container can take, and "variables of" a driver.
  std::vector<std::string> too_late;
  HintsByResource hints;
  StringMap refusals;  ///< resource -> why its plugin gave no hints
  std::map<std::string, TopologyHint> merged;
  std::vector<std::string> merge_reasons;
  AllocationByResource allocations;
  ExplainedDriver driver;
  ChosenClasses classes;
  RunOptions options;
  bool after_the_fact = false;       ///< the container was running already
  bool resized = false;              ///< its requests have changed
  bool dry_run = false;              ///< nothing was committed
  std::vector<std::string> untried;  ///< dry run: plugins that were not asked to allocate
  StringMap applied;                 ///< OCI property -> value that it got at its creation
  /// Name and duration of each executed step, in order; the last one failed if the result is
  /// "rejected".
  std::vector<std::pair<std::string, std::chrono::nanoseconds>> steps;
};

/// Whether a plugin bound the container to NUMA nodes by its annotations.
rules::NodeBinding BindingOf(const Explanation& explanation);

/// "container NAME of pod NAMESPACE/NAME".
std::string NameOf(const placement::ContainerDemand& demand);

/// {"pod":...,"container":...,"result":"admitted","requests":{"cpu":{"amount":4,"source":
/// "estimate"}},"hints":{"cpu":[{"nodes":[0],"preferred":true}]},...}; parts without content are
/// omitted. Instead of a list, hints can be "no preference", "impossible" or "none: <why>".
std::string ToJson(const Explanation& explanation, const placement::ContainerDemand& demand);

/// One decision, for metrics and logs.
struct AdmissionEvent {
  enum class Result { kAdmitted, kRepeated, kSkipped, kRejected };
  Result result = Result::kAdmitted;
  std::string resource;  ///< of the plugin that rejected or failed; empty: no plugin did
  /// Of a rejection: a word of RefusalReason, or "disk".
  std::string_view reason;
  std::chrono::nanoseconds took{0};

  std::optional<PodMessage> rejected;  ///< why; set when that is the result
  /// Of a rejection: the pod is to end if its container still has no record after this job, which
  /// may make room and try again.
  std::optional<ContainerKey> ends_pod_of;
  std::vector<PodMessage> warnings;            ///< about an admitted container
  std::vector<std::string_view> ignored_keys;  ///< of its annotations; labels of a counter
};

}  // namespace qrm::manager
