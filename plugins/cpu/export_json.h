// The cpu plugin's state as the QoS Resource Manager proposal shows it.
#pragma once

#include <map>
#include <string>

#include "plugins/cpu/state.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::cpu {

/// `machineState` by NUMA node and `pod_entries`; with pools configured, `pools` too, and
/// `borrowed` with what they use beside; with `headroom`, CPUs by NUMA node that an advisor says
/// batch work can count on, that. Indented by four.
std::string ExportJson(const View& view, const sdk::Grants& grants,
                       const std::map<int, double>& headroom);

}  // namespace qrm::cpu
