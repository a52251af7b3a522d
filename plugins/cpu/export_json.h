// The cpu plugin's state as the QoS Resource Manager proposal shows it.
#pragma once

#include <map>
#include <string>

#include "plugins/cpu/state.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::cpu {

/// `machineState` by NUMA node and `pod_entries`. With pools configured, also `pools`, and
/// `borrowed` with the CPUs that they borrow. With `headroom`, also the CPUs by NUMA node that
/// batch work can count on, as an advisor reports. Indented by four.
std::string ExportJson(const View& view, const sdk::Grants& grants,
                       const std::map<int, double>& headroom);

}  // namespace qrm::cpu
