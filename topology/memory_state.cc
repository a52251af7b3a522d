// Arithmetic of bytes per node and type.
#include "topology/memory_state.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace qrm {
namespace {

uint64_t At(const MemoryBytes& bytes, const std::string& type) {
  const auto found = bytes.find(type);
  return found == bytes.end() ? 0 : found->second;
}

MemoryAmounts Amounts(uint64_t total, uint64_t reserved, uint64_t taken) {
  MemoryAmounts amounts{.total = total, .system_reserved = reserved};
  amounts.allocatable = total - std::min(total, reserved);
  amounts.allocatable -= std::min(amounts.allocatable, taken);
  amounts.free = amounts.allocatable;
  return amounts;
}

/// The sums of free and reserved bytes over `cells`.
std::pair<uint64_t, uint64_t> GroupSums(const std::map<int, NodeMemory>& nodes,
                                        const NumaMask& cells, const std::string& type) {
  std::pair<uint64_t, uint64_t> sums;
  for (const int cell : cells) {
    const auto node = nodes.find(cell);
    if (node == nodes.end()) {
      continue;
    }
    if (const auto amounts = node->second.types.find(type); amounts != node->second.types.end()) {
      sums.first += amounts->second.free;
      sums.second += amounts->second.reserved;
    }
  }
  return sums;
}

}  // namespace

const std::vector<MemoryBlock>* MemoryState::Find(const std::string& pod,
                                                  const std::string& container) const {
  const auto containers = assignments.find(pod);
  if (containers == assignments.end()) {
    return nullptr;
  }
  const auto blocks = containers->second.find(container);
  return blocks == containers->second.end() ? nullptr : &blocks->second;
}

std::string HugepagesType(uint64_t page_bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"", "Ki", "Mi", "Gi", "Ti"};
  std::size_t unit = 0;
  while (page_bytes != 0 && page_bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    page_bytes /= 1024;
    ++unit;
  }
  return fmt::format("hugepages-{}{}", page_bytes, kUnits[unit]);
}

std::map<int, NodeMemory> UnusedMemory(const Machine& machine,
                                       const std::map<int, MemoryBytes>& reserved) {
  std::map<int, NodeMemory> nodes;
  for (const NumaNode& node : machine.nodes()) {
    const auto found = reserved.find(node.id);
    const MemoryBytes kept = found == reserved.end() ? MemoryBytes() : found->second;
    NodeMemory& memory = nodes[node.id];
    memory.cells.Add(node.id);
    uint64_t in_hugepages = 0;
    for (const auto& [size, count] : node.hugepages) {
      const std::string type = HugepagesType(size);
      memory.types[type] = Amounts(size * count, At(kept, type), 0);
      in_hugepages += size * count;
    }
    memory.types["memory"] = Amounts(node.memory_bytes, At(kept, "memory"), in_hugepages);
  }
  return nodes;
}

bool SameMemory(const std::map<int, NodeMemory>& a, const std::map<int, NodeMemory>& b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (const auto& [id, node] : a) {
    const auto other = b.find(id);
    if (other == b.end() || node.assignments != other->second.assignments ||
        node.cells != other->second.cells || node.types.size() != other->second.types.size()) {
      return false;
    }
    for (const auto& [type, amounts] : node.types) {
      const auto same = other->second.types.find(type);
      if (same == other->second.types.end() || amounts.total != same->second.total ||
          amounts.system_reserved != same->second.system_reserved ||
          amounts.allocatable != same->second.allocatable ||
          GroupSums(a, node.cells, type) != GroupSums(b, node.cells, type)) {
        return false;
      }
    }
  }
  return true;
}

MemoryBytes PodMemoryRequest(const std::vector<ContainerMemory>& containers) {
  MemoryBytes staying;  // sidecars so far, then the app containers too
  MemoryBytes most;
  std::set<std::string> lasting;  // types that an app container requests
  for (const ContainerMemory& container : containers) {
    for (const auto& [type, bytes] : container.bytes) {
      uint64_t now = staying[type] + bytes;
      if (container.role != ContainerRole::kInit) {
        staying[type] = now;
      }
      most[type] = std::max(most[type], now);
      if (container.role == ContainerRole::kApp) {
        lasting.insert(type);
      }
    }
  }
  std::erase_if(most, [&](const auto& entry) { return !lasting.contains(entry.first); });
  return most;
}

}  // namespace qrm
