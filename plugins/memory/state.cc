// Keeps the books of the NUMA nodes.
#include "plugins/memory/state.h"

#include <algorithm>

#include "plugins/memory/policy.h"

namespace qrm::memory {
namespace {

uint64_t ReservedOn(const MemoryPluginConfig& config, int node) {
  const auto found = config.reserved_bytes.find(node);
  return found == config.reserved_bytes.end() ? config.reserved_bytes_per_node : found->second;
}

}  // namespace

std::map<int, NodeBooks> BooksOf(const View& view) {
  std::map<int, NodeBooks> books;
  for (const NumaNode& node : view.machine.nodes()) {
    NodeBooks& book = books[node.id];
    book.total = node.memory_bytes;
    book.system_reserved = std::min(ReservedOn(view.config, node.id), node.memory_bytes);
    book.allocatable = book.total - book.system_reserved;
  }
  for (const auto& [key, binding] : view.state) {
    for (const auto& [node, bytes] : binding.bytes_by_node) {
      if (const auto book = books.find(node); book != books.end()) {
        book->second.allocated += bytes;
      }
    }
  }
  for (auto& [node, book] : books) {
    book.free = book.allocatable - std::min(book.allocated, book.allocatable);
  }
  return books;
}

MemoryState Rebuild(const MemoryPluginConfig& config, const sdk::Grants& grants) {
  MemoryState state;
  for (const auto& [key, grant] : grants) {
    if (grant.allocation.oci_property != kCpusetMems) {
      continue;
    }
    Binding& binding = state[key];
    for (const auto& [node, bytes] : grant.allocation.amount_by_node) {
      binding.bytes_by_node[static_cast<int>(node)] = bytes;
    }
    binding.tenant = TenantOf(config, grant.request);
  }
  return state;
}

}  // namespace qrm::memory
