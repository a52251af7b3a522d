// The command `qrm-scheduler simulate`.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace qrm::scheduler {

/// Plays the trace that `args` name and prints what came of it. Returns the exit code: 0 done, 1
/// for a trace that cannot be played, with one sentence on `err`, 2 misused, with what to type.
int RunSimulate(const std::vector<std::string>& args, std::ostream& out, std::ostream& err);

}  // namespace qrm::scheduler
