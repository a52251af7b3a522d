// Computes with bytes per node and type.
#include "topology/node_memory.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include <fmt/format.h>

namespace qrm {
namespace {

uint64_t At(const MemoryBytes& bytes, const std::string& type) {
  const auto found = bytes.find(type);
  return found == bytes.end() ? 0 : found->second;
}

MemoryAmounts Amounts(uint64_t total, uint64_t reserved, uint64_t taken) {
  MemoryAmounts amounts{.total = total, .system_reserved = std::min(total, reserved)};
  amounts.allocatable = total - amounts.system_reserved;
  amounts.allocatable -= std::min(amounts.allocatable, taken);
  amounts.free = amounts.allocatable;
  return amounts;
}

/// Null where `node` has nothing of `type`. `table` may be const.
template <typename Table>
auto* FindAmounts(Table& table, int node, const std::string& type) {
  const auto memory = table.find(node);
  const bool is_there = memory != table.end() && memory->second.types.contains(type);
  return is_there ? &memory->second.types.find(type)->second : nullptr;
}

}  // namespace

std::string HugepagesType(uint64_t page_bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"", "Ki", "Mi", "Gi", "Ti"};
  std::size_t unit = 0;
  while (page_bytes != 0 && page_bytes % 1024 == 0 && unit + 1 < kUnits.size()) {
    page_bytes /= 1024;
    ++unit;
  }
  return fmt::format("hugepages-{}{}", page_bytes, kUnits[unit]);
}

MemoryTable UnusedMemory(const Machine& machine, const std::map<int, MemoryBytes>& reserved) {
  MemoryTable table;
  for (const NumaNode& node : machine.nodes()) {
    const auto found = reserved.find(node.id);
    const MemoryBytes kept = found == reserved.end() ? MemoryBytes() : found->second;
    NodeMemory& memory = table[node.id];
    memory.cells.Add(node.id);
    uint64_t in_hugepages = 0;
    for (const auto& [size, count] : node.hugepages) {
      const std::string type = HugepagesType(size);
      memory.types[type] = Amounts(size * count, At(kept, type), 0);
      in_hugepages += size * count;
    }
    memory.types[kOrdinaryMemory] =
        Amounts(node.memory_bytes, At(kept, kOrdinaryMemory), in_hugepages);
  }
  return table;
}

std::map<int, uint64_t> Hold(const MemoryBlock& block, MemoryTable& table) {
  std::map<int, uint64_t> taken;
  uint64_t left = block.bytes;
  for (const int id : block.nodes) {
    const auto node = table.find(id);
    if (node == table.end()) {
      continue;
    }
    ++node->second.assignments;
    node->second.cells = block.nodes;
    MemoryAmounts* const amounts = FindAmounts(table, id, block.type);
    const uint64_t part = amounts == nullptr ? 0 : std::min(left, amounts->free);
    if (part > 0) {
      amounts->free -= part;
      amounts->reserved += part;
      left -= part;
      taken[id] = part;
    }
  }
  return taken;
}

uint64_t HoldOnNode(int node, const std::string& type, uint64_t bytes, MemoryTable& table) {
  MemoryAmounts* const amounts = FindAmounts(table, node, type);
  if (amounts == nullptr) {
    return 0;
  }
  const uint64_t given = std::min(amounts->free, bytes);
  amounts->reserved += bytes;
  amounts->free -= given;
  return given;
}

uint64_t Sum(const MemoryTable& table, const NumaMask& mask, const std::string& type,
             uint64_t MemoryAmounts::* amount) {
  uint64_t sum = 0;
  for (const int id : mask) {
    const MemoryAmounts* const amounts = FindAmounts(table, id, type);
    sum += amounts == nullptr ? 0 : amounts->*amount;
  }
  return sum;
}

}  // namespace qrm
