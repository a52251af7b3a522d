// Compares lists that are sorted by container; numbers changes, and recognises numbers from other
// objects.
#include "plugins/sdk/held_list.h"

#include <algorithm>
#include <charconv>
#include <random>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

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

namespace {

std::string NewName() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}.", device(), device());
}

std::optional<uint64_t> NumberIn(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(number) : std::nullopt;
}

}  // namespace

RecentChanges::RecentChanges(std::size_t most) : most_(most), self_(NewName()) {}

void RecentChanges::Note(const ContainerKey& key) {
  ++count_;
  latest_.push_back(key);
  if (latest_.size() > most_) {
    latest_.erase(latest_.begin());
  }
}

std::string RecentChanges::now() const {
  return self_ + std::to_string(count_);
}

std::optional<std::set<ContainerKey>> RecentChanges::Since(const std::string& now) const {
  if (!now.starts_with(self_)) {
    return std::nullopt;
  }
  const std::optional<uint64_t> number = NumberIn(std::string_view(now).substr(self_.size()));
  if (!number.has_value() || *number > count_ || count_ - *number > latest_.size()) {
    return std::nullopt;
  }
  return std::set<ContainerKey>(latest_.end() - static_cast<std::ptrdiff_t>(count_ - *number),
                                latest_.end());
}

}  // namespace qrm::sdk
