// A machine as one line of text that others place by: what decides about CPUs and memory.
#pragma once

#include <string>
#include <string_view>

#include "api/base/status.h"
#include "topology/machine.h"

namespace qrm {

/// CPUs with their cores, L3 caches, packages and kinds; NUMA nodes with their memory, its kinds
/// and huge pages; distances. Without devices, and without what is offline. Words of the form
/// NAME=VALUES, where VALUES are CPUs as the kernel lists them, or one number for each CPU or node
/// in ascending order: "7*4" stands for four times 7, "0-3" for 0, 1, 2 and 3. Units: bytes, pages.
/// Cost: O(CPUs + nodes squared).
std::string MachineText(const Machine& machine);

/// The machine of such a text. Errors: kInvalidArgument with the word that cannot be read.
/// Cost: bounded by 65,536 CPUs and 1,024 nodes, whatever `text` says.
StatusOr<Machine> ParseMachineText(std::string_view text);

}  // namespace qrm
