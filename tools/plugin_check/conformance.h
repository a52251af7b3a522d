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
  std::chrono::milliseconds timeout{2000};  ///< for each answer
};

enum class Verdict { kHolds, kBroken, kSkipped };

/// "ok", "BROKEN", "skipped".
std::string_view ToString(Verdict verdict);

struct RuleResult {
  std::string rule;  ///< what should be so
  Verdict verdict = Verdict::kHolds;
  std::string detail;  ///< what was seen; why it is broken or was skipped
};

/// Checks every rule in order and hands each result to `report` as it is known. After a broken rule
/// that the next ones need, those are left out; what was allocated is removed all the same.
/// Returns true when no rule is broken.
///
/// Threads: blocks; one at a time for a plugin that is not in service.
/// Cost: some fifteen calls, each up to the timeout.
bool CheckPlugin(const CheckSettings& settings, const Machine& machine,
                 const std::function<void(const RuleResult&)>& report);

}  // namespace qrm::manager
