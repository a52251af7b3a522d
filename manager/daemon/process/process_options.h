// The options of the whole process, with their defaults and keys.
#pragma once

#include <string>
#include <vector>

#include "api/base/config_key.h"
#include "api/base/log_level.h"
#include "api/base/log_settings.h"

namespace qrm::manager {

struct ProcessOptions {
  bool enabled = true;
  std::string state_dir = "/var/lib/qrm/state";
  int nice = -20;             ///< of the threads that admit containers
  int realtime_priority = 0;  ///< of the same threads; 0: not in real time
  log::Level log_level = log::Level::kInfo;
  log::Form log_form = log::Form::kText;
};

inline std::vector<config::ConfigKey> ProcessKeys(ProcessOptions& options) {
  constexpr int kHighestPriority = 99;  // sched(7)
  constexpr int kMostFavoured = -20;    // setpriority(2)
  return {
      config::SwitchKey("enabled", options.enabled,
                        "If false, qrmd changes no container and places none: everything stays as "
                        "kubelet and the runtime make it. Queries are answered."),
      config::PathKey("state-dir", options.state_dir,
                      "The directory with the state of qrmd and its built-in plugins. Only one "
                      "qrmd can use it at a time."),
      config::NumberKey("nice", options.nice,
                        {kMostFavoured, 0, "write -20 for the most, or 0 for none"},
                        "The nice value of the threads that admit containers. Below 0, pods start "
                        "sooner on a busy node. Needs CAP_SYS_NICE; without it, qrmd logs a "
                        "warning."),
      config::NumberKey("realtime-priority", options.realtime_priority,
                        {0, kHighestPriority, "write 1 for real-time, or 0 for none"},
                        "Above 0, the threads that admit containers run in real time (SCHED_RR). "
                        "Needs reserved-cpus in plugins.cpu, where qrmd then runs. Needs "
                        "CAP_SYS_NICE; without it, qrmd logs a warning. A thread that computes "
                        "for 200 ms without a pause continues without real time."),
      config::ChoiceKey<log::Level>(
          "log-level", options.log_level,
          {"level", {"debug", "info", "warning", "error"}, log::ParseLevel},
          "The lowest level of lines in the log."),
      config::ChoiceKey<log::Form>(
          "log-format", options.log_form, {"format", {"text", "json"}, log::ParseForm},
          "With json, each line is an object with time, level, event, and a text for each field."),
  };
}

}  // namespace qrm::manager
