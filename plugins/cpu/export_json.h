// The cpu plugin's state as the QoS Resource Manager proposal shows it.
#pragma once

#include <string>

#include "plugins/cpu/state.h"
#include "plugins/sdk/plugin.h"

namespace qrm::cpu {

/// `machineState` by NUMA node and `pod_entries`; with pools configured, `pools` too, and
/// `borrowed` with what they use beside. Indented by four.
std::string ExportJson(const View& view, const sdk::Grants& grants);

}  // namespace qrm::cpu
