// Checks answers against the machine.
#include "plugins/sdk/calls/answer_check.h"

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"

namespace qrm::calls {
namespace {

constexpr std::size_t kMaxText = 400;

Status NotOnMachine(std::string_view what, const std::string& nodes,
                    const NumaMask& machine_nodes) {
  return Errorf(StatusCode::kInvalidArgument,
                "{} contains NUMA node {}, which this machine does not have; its nodes are {}",
                what, nodes, ToString(machine_nodes));
}

Status CheckAmounts(const std::map<uint64_t, uint64_t>& amount_by_node,
                    const NumaMask& machine_nodes) {
  for (const auto& [node, amount] : amount_by_node) {
    if (node >= IdSet::kMaxIds || !machine_nodes.Has(static_cast<int>(node))) {
      return NotOnMachine("its assignment", fmt::format("{}", node), machine_nodes);
    }
  }
  return OkStatus();
}

Status CheckMems(const ResourceAllocation& allocation, const NumaMask& machine_nodes) {
  if (allocation.oci_property != kCpusetMems) {
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const NumaMask mems, NumaMask::Parse(allocation.value));
  const NumaMask missing = mems - machine_nodes;
  return missing.Empty() ? OkStatus() : NotOnMachine(kCpusetMems, ToString(missing), machine_nodes);
}

Status CheckAllocation(const ResourceAllocation& allocation, const NumaMask& machine_nodes) {
  if (allocation.hints.has_value()) {
    QRM_RETURN_IF_ERROR(CheckHints(*allocation.hints, machine_nodes));
  }
  QRM_RETURN_IF_ERROR(CheckAmounts(allocation.amount_by_node, machine_nodes));
  return CheckMems(allocation, machine_nodes);
}

}  // namespace

Status CheckHintCount(std::size_t count) {
  if (count > kMaxHints) {
    return Errorf(StatusCode::kInvalidArgument, "it has {} hints, the maximum is {}", count,
                  kMaxHints);
  }
  return OkStatus();
}

Status CheckHints(const std::vector<TopologyHint>& hints, const NumaMask& machine_nodes) {
  QRM_RETURN_IF_ERROR(CheckHintCount(hints.size()));
  for (const TopologyHint& hint : hints) {
    if (!hint.nodes.IsSubsetOf(machine_nodes)) {
      return NotOnMachine("a hint", ToString(hint.nodes - machine_nodes), machine_nodes);
    }
  }
  return OkStatus();
}

Status CheckAllocations(const AllocationByResource& allocations, const NumaMask& machine_nodes) {
  for (const auto& [resource, allocation] : allocations) {
    if (const Status fits = CheckAllocation(allocation, machine_nodes); !fits.ok()) {
      return Annotate(fits, "resource " + resource);
    }
  }
  return OkStatus();
}

std::string OneLine(std::string_view text) {
  return Escaped(Cut(text, kMaxText));
}

}  // namespace qrm::calls
