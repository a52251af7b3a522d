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

std::set<std::string> CpuListsOf(const ContainerRecord& record) {
  const auto took = record.applied.find(std::string(kCpusetCpus));
  std::set<std::string> lists = {took == record.applied.end() ? std::string() : took->second};
  for (const auto& [resource, allocation] : record.allocations) {
    if (allocation->oci_property == kCpusetCpus) {
      lists.insert(allocation->value);
    }
  }
  return lists;
}

PodMemory::PodMemory(const PodRecord& pod, const std::string& without) {
  for (const auto& [name, record] : pod.containers) {
    for (const auto& [resource, allocation] : record->allocations) {
      if (name != without && IsBoundMemory(allocation)) {
        Add(record->type, allocation->amount_by_node);
      }
    }
  }
}

void PodMemory::Add(ContainerType type, const std::map<uint64_t, uint64_t>& bytes_by_node) {
  for (const auto& [node, bytes] : bytes_by_node) {
    parts_[node].Add(type, bytes);
  }
}

uint64_t PodMemory::AtOnce(uint64_t node) const {
  const auto part = parts_.find(node);
  return part == parts_.end() ? 0 : part->second.AtOnce();
}

void ClassHolders::Add(ContainerType type, bool restartable_init) {
  if (type == ContainerType::kInit && !restartable_init) {
    initializing_ = true;
  } else {
    ++lasting_;
  }
}

ClassUsers ClassHolders::AtOnce() const {
  const uint64_t containers = lasting_ == 0 && initializing_ ? 1 : lasting_;
  return {.pods = std::min<uint64_t>(containers, 1), .containers = containers};
}

namespace {

/// What `pod` adds to the users of classes.
ClassUse ClassesOf(const PodRecord& pod) {
  std::map<ClassName, ClassHolders> holders;
  for (const auto& [name, record] : pod.containers) {
    for (const auto& name_of_class : record->classes) {
      holders[name_of_class].Add(*record);
    }
  }
  ClassUse use;
  for (const auto& [name, of_class] : holders) {
    use.emplace(name, of_class.AtOnce());
  }
  return use;
}

/// States share `all`: it is replaced, and only where it changes.
template <typename Counts, typename CountsOf>
void RecountShared(const PodRecord* before, const PodRecord* now, const CountsOf& counts_of,
                   std::shared_ptr<const Counts>& all) {
  const Counts was = before == nullptr ? Counts() : counts_of(*before);
  const Counts is = now == nullptr ? Counts() : counts_of(*now);
  if (was == is) {
    return;
  }
  auto next = std::make_shared<Counts>(*all);
  for (const auto& [key, count] : is) {
    (*next)[key] += count;
  }
  for (const auto& [key, count] : was) {
    auto& left = (*next)[key];
    left -= count;
    if (left == typename Counts::mapped_type()) {
      next->erase(key);
    }
  }
  all = std::move(next);
}

}  // namespace

void Recount(const PodRecord* before, const PodRecord* now, std::map<uint64_t, uint64_t>& bound) {
  if (before != nullptr) {
    PodMemory(*before).ForEachNode([&](uint64_t node, uint64_t bytes) { bound[node] -= bytes; });
  }
  if (now != nullptr) {
    PodMemory(*now).ForEachNode([&](uint64_t node, uint64_t bytes) { bound[node] += bytes; });
  }
}

void Recount(const PodRecord* before, const PodRecord* now, std::shared_ptr<const ClassUse>& use) {
  RecountShared(before, now, ClassesOf, use);
}

void AddCpuLists(const PodRecord& pod, CpuLists& lists) {
  for (const auto& [name, record] : pod.containers) {
    for (const std::string& list : CpuListsOf(*record)) {
      ++lists[list];
    }
  }
}

void Recount(const PodRecord* before, const PodRecord* now,
             std::shared_ptr<const CpuLists>& lists) {
  const auto lists_of = [](const PodRecord& pod) {
    CpuLists of_pod;
    AddCpuLists(pod, of_pod);
    return of_pod;
  };
  RecountShared(before, now, lists_of, lists);
}

}  // namespace qrm::checkpoint
