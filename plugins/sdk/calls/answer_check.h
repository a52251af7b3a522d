// Checks whether an answer fits this machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"

namespace qrm::calls {

/// The most hints in one answer: all masks of 16 NUMA nodes, more than any machine needs.
inline constexpr std::size_t kMaxHints = 1 << 16;

/// Errors: kInvalidArgument above kMaxHints.
Status CheckHintCount(std::size_t count);

/// OK if there are at most kMaxHints hints, each within `machine_nodes`. Errors: kInvalidArgument
/// with the excess.
Status CheckHints(const std::vector<TopologyHint>& hints, const NumaMask& machine_nodes);

/// OK when hints, amounts by node and CpusetMems stay within `machine_nodes`.
/// Errors: kInvalidArgument naming the resource and the nodes.
Status CheckAllocations(const AllocationByResource& allocations, const NumaMask& machine_nodes);

/// `text` for a log line: without control characters, at most a few hundred bytes.
std::string OneLine(std::string_view text);

}  // namespace qrm::calls
