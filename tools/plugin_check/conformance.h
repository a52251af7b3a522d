// Checks over its socket whether a resource plugin keeps the protocol: one verdict per rule.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "topology/machine.h"

namespace qrm::manager {

/// What the plugin is asked for. The pod does not exist: its UID is ours, and it is removed again.
struct CheckSettings {
  std::string socket;
  /// Empty: the name that the plugin announces in the watched directory's protocol.
  std::string resource;
  double amount = 1;  ///< in the resource's units, for each of two containers
  std::string pod_role;
  std::string pod_type;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  std::string spec;                         ///< of a compute driver's containers
  std::chrono::milliseconds timeout{2000};  ///< for each answer
  /// Starts the plugin, and again after kill -9; empty: it runs already, and is not killed.
  std::string command;
};

/// kRefused: the plugin may say no to the request, but what needs an allocation is not checked.
enum class Verdict { kHolds, kBroken, kSkipped, kRefused };

/// The verdict's word in the report, such as "ok".
std::string_view ToString(Verdict verdict);

struct RuleResult {
  std::string rule;  ///< what should be so
  Verdict verdict = Verdict::kHolds;
  std::string detail;  ///< what was seen; why it is broken or was skipped
};

/// Checks every rule in order and hands each result to `report` as it is known. A broken rule does
/// not end the check: only rules that cannot be checked without it are left out. Allocations are
/// removed in any case. Returns kBroken if a rule is broken, else kRefused if an allocation was
/// rejected that other rules need, else kHolds.
///
/// Threads: blocks; one at a time for a plugin that is not in service.
/// Cost: up to a hundred calls, each up to the timeout.
Verdict CheckPlugin(const CheckSettings& settings, const Machine& machine,
                    const std::function<void(const RuleResult&)>& report);

/// The same of a compute driver: two containers of `settings.amount` CPUs each ask with
/// `settings.spec` for CPUs of `machine`, but its first.
Verdict CheckDriver(const CheckSettings& settings, const Machine& machine,
                    const std::function<void(const RuleResult&)>& report);

}  // namespace qrm::manager
