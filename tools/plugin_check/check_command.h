// qrm-plugin-check: the conformance test as a command.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace qrm::manager {

/// Checks the plugin that `arguments` name and prints one line per rule to `out`; misuse goes to
/// `err` with what to type. Returns the exit code: 0 when every rule holds, 1 when one is broken, 2
/// for misuse.
int RunPluginCheck(std::vector<std::string> arguments, std::ostream& out, std::ostream& err);

}  // namespace qrm::manager
