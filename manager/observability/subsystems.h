// The subsystems of a node at a glance: one line each, with the time since when it is so; and a log
// of what makes the node not ready or degraded, when it begins and when it ends.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/mutex.h"
#include "manager/observability/node_status.h"

namespace qrm::manager {

struct ClassTypeStatus;
struct PluginInfo;

/// "runtime", "NRI", "API server".
std::string_view ToString(Subsystem subsystem);
/// "ok", "degraded", "failing".
std::string_view ToString(Health health);

/// What the lines show beside the status.
struct SubsystemFacts {
  const std::vector<PluginInfo>& plugins;
  const std::vector<ClassTypeStatus>& classes;
  std::size_t pods = 0;
  std::size_t containers = 0;
  std::size_t pending_removals = 0;  ///< removed pods of which a plugin is not notified yet
};

/// One line for each subsystem, in their order, without `since`. A reason that no subsystem has is
/// qrmd's own, so that a node is never worse than its worst line.
std::vector<SubsystemStatus> SubsystemsOf(const NodeStatus& status, const SubsystemFacts& facts);

/// Remembers since when each subsystem is as it is. Threads: any.
class HealthWatch {
 public:
  /// Sets `since` of all `lines`: `now` for a health that differs from that of the latest call.
  void Note(std::chrono::steady_clock::time_point now, std::vector<SubsystemStatus>& lines);

 private:
  struct Seen {
    Health health = Health::kOk;
    std::chrono::steady_clock::time_point since;
  };
  Mutex mutex_;
  std::array<std::optional<Seen>, kSubsystemCount> seen_ QRM_GUARDED_BY(mutex_);
};

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
