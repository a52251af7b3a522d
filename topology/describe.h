// Shows a Machine: as a NUMA map for people, as JSON for programs.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "topology/machine.h"

namespace qrm {

/// The NUMA map: counts, then each package with its nodes, their memory, CPUs, L3 caches, kinds of
/// cores, NICs and other PCI devices; then what is offline, the distances and the warnings.
/// Ends with a line feed.
/// Units: memory in binary units (GiB), distances as in the SLIT.
/// Cost:  O(CPUs + nodes squared).
std::string DescribeMachine(const Machine& machine);

/// The whole model. CPU and node sets are in the kernel's list form; what is not known is null.
/// Text that is not UTF-8 has its broken bytes replaced when dumped with error_handler_t::replace.
/// Units: bytes, distances as in the SLIT.
/// Cost:  O(CPUs + nodes squared).
nlohmann::ordered_json MachineToJson(const Machine& machine);

}  // namespace qrm
