// Compares the reasons with those of the status before.
#include "manager/daemon/reason_log.h"

#include <utility>
#include <vector>

#include "api/base/log.h"
#include "api/base/repeated_lines.h"

namespace qrm::manager {

void ReasonLog::Note(const NodeStatus& status) {
  Compare(Kind::kNotReady, status.not_ready_reasons, not_ready_);
  Compare(Kind::kDegraded, status.degraded_reasons, degraded_);
}

void ReasonLog::Compare(Kind kind, const std::vector<std::string>& now, Reasons& known) {
  Reasons next;
  for (const std::string& reason : now) {
    next.emplace(WithoutNumbers(reason), reason);
  }
  for (const auto& [key, reason] : next) {
    if (known.contains(key)) {
      continue;
    }
    if (kind == Kind::kNotReady) {
      log::Error("not ready", {{"reason", reason}});
    } else {
      log::Warning("degraded", {{"reason", reason}});
    }
  }
  for (const auto& [key, reason] : known) {
    if (!next.contains(key)) {
      log::Info(kind == Kind::kNotReady ? "no longer not ready" : "no longer degraded",
                {{"reason", reason}});
    }
  }
  known = std::move(next);
}

}  // namespace qrm::manager
