// What pods hold that no other may have: CPUs of their own, and memory that is bound to NUMA nodes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/resource.h"
#include "checkpoint/node_state.h"

namespace qrm::checkpoint {

/// Whether `allocation` gives CPUs to its container alone.
bool IsExclusiveCpuset(const ResourceAllocation& allocation);

/// Whether `allocation` binds memory of NUMA nodes.
bool IsBoundMemory(const ResourceAllocation& allocation);

/// Whether any container of `pod` has CPUs for itself alone.
bool OwnsCpus(const PodRecord& pod);

/// The memory that a pod binds at once. Of its init containers the largest counts, as they run in
/// turn, and only where the others need less. Units: bytes by NUMA node.
class PodMemory {
 public:
  PodMemory() = default;
  /// Of `pod` but for `without`, when that is not empty.
  explicit PodMemory(const PodRecord& pod, const std::string& without = "");

  void Add(ContainerType type, const std::map<uint64_t, uint64_t>& bytes_by_node);
  /// Calls `visit(node, bytes)` for each node of which it binds something.
  template <typename Visit>
  void ForEachNode(const Visit& visit) const {
    for (const auto& [node, part] : parts_) {
      visit(node, part.AtOnce());
    }
  }
  uint64_t AtOnce(uint64_t node) const;

 private:
  struct Part {
    uint64_t largest_init = 0;
    uint64_t others = 0;
    uint64_t AtOnce() const { return largest_init > others ? largest_init : others; }
  };
  std::map<uint64_t, Part> parts_;
};

}  // namespace qrm::checkpoint
