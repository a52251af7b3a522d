// What pods hold that no other pod may have: exclusive CPUs, memory that is bound to NUMA nodes,
// and the capacity of classes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "api/container_turns.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"

namespace qrm::checkpoint {

/// Whether `allocation` gives CPUs to its container alone.
bool IsExclusiveCpuset(const ResourceAllocation& allocation);

/// Whether `allocation` binds memory of NUMA nodes.
bool IsBoundMemory(const ResourceAllocation& allocation);

/// Whether any container of `pod` has CPUs for itself alone.
bool OwnsCpus(const PodRecord& pod);

/// Where a container may run: the CPUs of its allocations, and those that the runtime last took;
/// empty where it took none.
std::set<std::string> CpuListsOf(const ContainerRecord& record);

/// The memory that a pod binds at once. Units: bytes by NUMA node.
class PodMemory {
 public:
  PodMemory() = default;
  /// Of `pod` except its container `without`, when that is not empty.
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
  std::map<uint64_t, AmountInTurn<uint64_t>> parts_;
};

/// Those of one pod's containers that have one class.
class ClassHolders {
 public:
  void Add(const ContainerRecord& record) { Add(record.type, record.restartable_init); }
  void Add(ContainerType type, bool restartable_init);
  /// How many run at the same time: all main containers and sidecars, or one that initializes.
  ClassUsers AtOnce() const;

 private:
  uint64_t lasting_ = 0;
  bool initializing_ = false;
};

/// What `before` holds counts no more in `bound`, by NUMA node, what `now` holds counts; either may
/// be null.
void Recount(const PodRecord* before, const PodRecord* now, std::map<uint64_t, uint64_t>& bound);
/// The same for classes.
void Recount(const PodRecord* before, const PodRecord* now, std::shared_ptr<const ClassUse>& use);
/// The same for lists of CPUs.
void Recount(const PodRecord* before, const PodRecord* now, std::shared_ptr<const CpuLists>& lists);

/// Counts where the containers of `pod` may run, too.
void AddCpuLists(const PodRecord& pod, CpuLists& lists);

}  // namespace qrm::checkpoint
