// Commands that keep showing what changes.
#pragma once

#include <functional>
#include <ostream>

#include "tools/qrmctl/command.h"

namespace qrm::manager::cli {

/// Waits until it is time to look again; false: the output is closed.
using Wait = std::function<bool(std::ostream& out)>;

/// Two seconds, as long as `out` takes what is written.
bool WaitTwoSeconds(std::ostream& out);

/// Whether `args` ask for that.
bool IsWatched(const Args& args);

/// Runs `run` with `args` again and again, and prints what it says whenever that has changed: on a
/// terminal in place of what stood there, else below a line of its own. Ends with what `run` fails
/// with.
int Watch(Run run, const Args& args, std::ostream& out, std::ostream& err, const Wait& wait);

}  // namespace qrm::manager::cli
