// Logs what makes the node not ready or degraded when it begins and when it ends.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "manager/observability/node_status.h"

namespace qrm::manager {

/// Knows the reasons of the latest status. Reasons that differ only in numbers are one.
///
/// Threads: one.
class ReasonLog {
 public:
  /// Logs what has begun and what has ended, and returns it as texts for events.
  std::vector<std::string> Note(const NodeStatus& status);

 private:
  enum class Kind { kNotReady, kDegraded };
  using Reasons = std::map<std::string, std::string>;  // by the sentence without its numbers

  static void Compare(Kind kind, const std::vector<std::string>& now, Reasons& known,
                      std::vector<std::string>& changes);

  Reasons not_ready_;
  Reasons degraded_;
};

}  // namespace qrm::manager
