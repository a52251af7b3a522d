// The command `qrm-scheduler serve`.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "scheduler/extender/scheduler_main.h"

namespace qrm::scheduler {

/// Serves until SIGTERM or SIGINT. Returns the exit code: 0 done, 1 when it cannot serve, with one
/// sentence on `err`, 2 for a configuration that is wrong.
int RunServe(const SchedulerProgram& program, const std::vector<std::string>& args,
             std::ostream& out, std::ostream& err);

}  // namespace qrm::scheduler
