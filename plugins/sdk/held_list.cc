// Compares lists that are sorted by container.
#include "plugins/sdk/held_list.h"

#include <algorithm>
#include <utility>

namespace qrm::sdk {

HeldAllocations ToHeld(const AllocationByContainer& allocations) {
  HeldList list;
  list.reserve(allocations.size());
  for (const auto& [key, by_resource] : allocations) {
    for (const auto& [resource, allocation] : by_resource) {
      list.push_back({.key = key, .resource = resource, .allocation = allocation});
    }
  }
  return std::make_shared<const HeldList>(std::move(list));
}

HeldAllocations HeldOf(const HeldList& held, const PodSet& pods) {
  HeldList selected;
  for (const SharedText& pod : pods) {
    const auto begin = std::lower_bound(
        held.begin(), held.end(), pod,
        [](const HeldAllocation& one, const SharedText& uid) { return one.key.pod_uid < uid; });
    const auto end =
        std::find_if(begin, held.end(), [&](const auto& one) { return one.key.pod_uid != pod; });
    selected.insert(selected.end(), begin, end);
  }
  return std::make_shared<const HeldList>(std::move(selected));
}

PodSet PodsUnlike(const HeldList& before, const HeldList& now) {
  PodSet pods;
  if (&before == &now) {
    return pods;
  }
  auto a = before.begin();
  auto b = now.begin();
  while (a != before.end() || b != now.end()) {
    const bool only_a = b == now.end() || (a != before.end() && a->key < b->key);
    const bool only_b = a == before.end() || (b != now.end() && b->key < a->key);
    if (only_a || only_b || *a != *b) {
      pods.insert(only_b ? b->key.pod_uid : a->key.pod_uid);
    }
    a += only_b ? 0 : 1;
    b += only_a ? 0 : 1;
  }
  return pods;
}

}  // namespace qrm::sdk
