// Compares the reasons with those of the status before.
#include "manager/daemon/reason_log.h"

#include <utility>

#include "api/base/log.h"
#include "api/base/repeated_lines.h"

namespace qrm::manager {

std::vector<std::string> ReasonLog::Note(const NodeStatus& status) {
  std::vector<std::string> changes;
  Compare(Kind::kNotReady, status.not_ready_reasons, not_ready_, changes);
  Compare(Kind::kDegraded, status.degraded_reasons, degraded_, changes);
  return changes;
}

void ReasonLog::Compare(Kind kind, const std::vector<std::string>& now, Reasons& known,
                        std::vector<std::string>& changes) {
  const bool is_degraded = kind == Kind::kDegraded;
  Reasons next;
  for (const std::string& reason : now) {
    next.emplace(WithoutNumbers(reason), reason);
  }
  for (const auto& [key, reason] : next) {
    if (known.contains(key)) {
      continue;
    }
    changes.push_back((is_degraded ? "degraded: " : "not ready: ") + reason);
    if (is_degraded) {
      log::Warning("degraded", {{"reason", reason}});
    } else {
      log::Error("not ready", {{"reason", reason}});
    }
  }
  for (const auto& [key, reason] : known) {
    if (!next.contains(key)) {
      changes.push_back((is_degraded ? "no longer degraded: " : "no longer not ready: ") + reason);
      log::Info(is_degraded ? "no longer degraded" : "no longer not ready", {{"reason", reason}});
    }
  }
  known = std::move(next);
}

}  // namespace qrm::manager
