// Whether the container runtime manages resctrl itself.
#pragma once

#include <string>
#include <vector>

namespace qrm::rdt {

/// The configuration files of containerd and CRI-O.
std::vector<std::string> RuntimeConfigFiles(const std::string& etc = "/etc");

/// The first of `files` that sets `rdt_config_file`; empty if none does. A runtime with that
/// setting removes every resctrl group that is not in its own file. Source: containerd's
/// tasks-service, CRI-O's [crio.runtime]: TOML, one key per line.
std::string FindRuntimeSetting(const std::vector<std::string>& files);

}  // namespace qrm::rdt
