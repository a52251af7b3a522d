// Whether the container runtime manages resctrl itself.
#pragma once

#include <string>
#include <vector>

namespace qrm::rdt {

/// Where containerd and CRI-O look for their configuration.
std::vector<std::string> RuntimeConfigFiles(const std::string& etc = "/etc");

/// The first of `files` that sets `rdt_config_file`; empty when none does. A runtime with that
/// setting removes every group of resctrl that is not in its own file.
/// Source: containerd's tasks-service, CRI-O's [crio.runtime]: TOML, one key on a line.
std::string FindRuntimeSetting(const std::vector<std::string>& files);

}  // namespace qrm::rdt
