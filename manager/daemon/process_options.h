// The options of the whole process, with their defaults and keys.
#pragma once

#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/log.h"

namespace qrm::manager {

struct ProcessOptions {
  std::string state_dir = "/var/lib/qrm/state";
  int realtime_priority = 1;  ///< 0: as every other process
  log::Level log_level = log::Level::kInfo;
};

inline std::vector<config::ConfigKey> ProcessKeys(ProcessOptions& options) {
  constexpr int kHighestPriority = 99;  // sched(7)
  return {
      config::PathKey("state-dir", options.state_dir,
                      "Where qrmd and its built-in plugins keep their state; one qrmd at a time."),
      config::NumberKey("realtime-priority", options.realtime_priority,
                        {0, kHighestPriority, "write 1 for real-time, or 0 for none"},
                        "Above 0: the threads that a container's creation passes run in real time "
                        "(SCHED_RR), so that pods start as soon on a node whose CPUs are all busy "
                        "as on an idle one. Needs CAP_SYS_NICE; without it, a warning says so."),
      config::ChoiceKey<log::Level>(
          "log-level", options.log_level,
          {"level", {"debug", "info", "warning", "error"}, log::ParseLevel},
          "Lines below this level are left out."),
  };
}

}  // namespace qrm::manager
