// Checks what the protocol's messages cannot say about an answer: whether it fits this machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"

namespace qrm::calls {

/// One answer may hold this many hints: all masks of 16 NUMA nodes, more than any machine needs.
inline constexpr std::size_t kMaxHints = 1 << 16;

/// Errors: kInvalidArgument above kMaxHints.
Status CheckHintCount(std::size_t count);

/// OK when there are no more hints than that and each stays within `machine_nodes`. Errors:
/// kInvalidArgument naming what is too much.
Status CheckHints(const std::vector<TopologyHint>& hints, const NumaMask& machine_nodes);

/// OK when hints, amounts by node and CpusetMems stay within `machine_nodes`.
/// Errors: kInvalidArgument naming the resource and the nodes.
Status CheckAllocations(const AllocationByResource& allocations, const NumaMask& machine_nodes);

/// `text` fit for a sentence and a log line: no control characters, no more than a few hundred
/// bytes.
std::string OneLine(std::string_view text);

}  // namespace qrm::calls
