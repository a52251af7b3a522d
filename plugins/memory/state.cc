// Keeps the books of the NUMA nodes.
#include "plugins/memory/state.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "plugins/memory/policy.h"

namespace qrm::memory {
namespace {

uint64_t ReservedOn(const MemoryPluginConfig& config, int node) {
  const auto found = config.reserved_bytes.find(node);
  return found == config.reserved_bytes.end() ? config.reserved_bytes_per_node : found->second;
}

std::string NameOf(const ContainerRequest& request) {
  return fmt::format("container {} of pod {}/{}", request.key.container, request.pod_namespace,
                     request.pod_name);
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

Rebuilt Rebuild(const Machine& machine, const MemoryPluginConfig& config,
                const sdk::Grants& grants) {
  Rebuilt rebuilt;
  for (const auto& [key, grant] : grants) {
    if (grant.allocation.oci_property != kCpusetMems) {
      continue;
    }
    Binding binding{.tenant = TenantOf(config, grant.request)};
    for (const auto& [node, bytes] : grant.allocation.amount_by_node) {
      if (machine.FindNode(static_cast<int>(node)) != nullptr) {
        binding.bytes_by_node[static_cast<int>(node)] = bytes;
      } else {
        rebuilt.repairs.push_back(fmt::format("{} loses {} bytes on NUMA node {}, which is gone",
                                              NameOf(grant.request), bytes, node));
      }
    }
    if (!binding.bytes_by_node.empty()) {
      rebuilt.state.emplace(key, std::move(binding));
    }
  }
  for (const auto& [node, book] : BooksOf({machine, config, rebuilt.state})) {
    if (book.allocated > book.allocatable) {
      rebuilt.repairs.push_back(
          fmt::format("NUMA node {} has given {} bytes and has {} to give now: nothing is free",
                      node, book.allocated, book.allocatable));
    }
  }
  return rebuilt;
}

std::map<ContainerKey, ResourceAllocation> ChangedAllocations(const MemoryState& state,
                                                              const sdk::Grants& grants) {
  std::map<ContainerKey, ResourceAllocation> changed;
  for (const auto& [key, grant] : grants) {
    const auto binding = state.find(key);
    NumaMask nodes;
    std::map<uint64_t, uint64_t> amounts;
    if (binding != state.end()) {
      for (const auto& [node, bytes] : binding->second.bytes_by_node) {
        nodes.Add(node);
        amounts[static_cast<uint64_t>(node)] = bytes;
      }
    }
    ResourceAllocation now = grant.allocation;
    if (now.oci_property != kCpusetMems || now.amount_by_node == amounts) {
      continue;
    }
    now.amount_by_node = std::move(amounts);
    now.value = ToString(nodes);
    now.oci_property = nodes.Empty() ? "" : now.oci_property;
    changed.emplace(key, std::move(now));
  }
  return changed;
}

}  // namespace qrm::memory
