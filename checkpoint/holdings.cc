// Reads from records what their pods hold.
#include "checkpoint/holdings.h"

#include <algorithm>

namespace qrm::checkpoint {

bool IsExclusiveCpuset(const ResourceAllocation& allocation) {
  return allocation.exclusive && allocation.oci_property == kCpusetCpus;
}

bool IsBoundMemory(const ResourceAllocation& allocation) {
  return allocation.oci_property == kCpusetMems && !allocation.amount_by_node.empty();
}

bool OwnsCpus(const PodRecord& pod) {
  return std::any_of(pod.containers.begin(), pod.containers.end(), [](const auto& container) {
    const AllocationByResource& allocations = container.second->allocations;
    return std::any_of(allocations.begin(), allocations.end(),
                       [](const auto& entry) { return IsExclusiveCpuset(entry.second); });
  });
}

PodMemory::PodMemory(const PodRecord& pod, const std::string& without) {
  for (const auto& [name, record] : pod.containers) {
    for (const auto& [resource, allocation] : record->allocations) {
      if (name != without && IsBoundMemory(allocation)) {
        Add(record->type, allocation.amount_by_node);
      }
    }
  }
}

void PodMemory::Add(ContainerType type, const std::map<uint64_t, uint64_t>& bytes_by_node) {
  for (const auto& [node, bytes] : bytes_by_node) {
    Part& part = parts_[node];
    if (type == ContainerType::kInit) {
      part.largest_init = std::max(part.largest_init, bytes);
    } else {
      part.others += bytes;
    }
  }
}

uint64_t PodMemory::AtOnce(uint64_t node) const {
  const auto part = parts_.find(node);
  return part == parts_.end() ? 0 : part->second.AtOnce();
}

}  // namespace qrm::checkpoint
