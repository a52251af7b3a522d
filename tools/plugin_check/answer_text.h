// A plugin's answers in a few words, for the lines of qrm-plugin-check.
#pragma once

#include <string>

#include "api/hint.h"
#include "api/resource.h"

namespace qrm::manager {

/// "with_topology_alignment=true need_reconcile=false pre_start_required=false".
std::string Describe(const PluginOptions& options);
/// "cpu: CpusetCpus=0-3, memory: no knob=", or "nothing".
std::string Describe(const AllocationByResource& allocations);
/// "no preference", "impossible" or "3 hints".
std::string Describe(const HintList& hints);

}  // namespace qrm::manager
