// Accounts for the memory of each NUMA node.
#include "plugins/memory/state.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "plugins/memory/policy.h"

namespace qrm::memory {
namespace {

constexpr double kLargestAmount = 9007199254740992.0;  // 2^53: whole bytes in a double up to here

std::string NameOf(const ContainerRequest& request) {
  return fmt::format("container {} of pod {}/{}", request.key.container, request.pod_namespace,
                     request.pod_name);
}

/// What is reserved on each node of the machine.
std::map<int, MemoryBytes> ReservedOf(const Machine& machine, const MemoryPluginConfig& config) {
  std::map<int, MemoryBytes> reserved;
  for (const NumaNode& node : machine.nodes()) {
    const auto found = config.reserved_bytes.find(node.id);
    reserved[node.id] = found == config.reserved_bytes.end()
                            ? MemoryBytes{{kOrdinaryMemory, config.reserved_bytes_per_node}}
                            : found->second;
  }
  return reserved;
}

/// Collects the repairs of one rebuild.
class Rebuilder {
 public:
  Rebuilder(const Machine& machine, const MemoryPluginConfig& config, const SavedInits& inits)
      : machine_(machine), config_(config), inits_(inits) {}

  void Add(const sdk::Grant& grant) {
    Binding binding{.tenant = TenantOf(config_, grant.request),
                    .type = grant.request.type,
                    .index = grant.request.index};
    for (const auto& [node, bytes] : grant.allocation.amount_by_node) {
      if (machine_.FindNode(static_cast<int>(node)) != nullptr) {
        binding.bytes_by_node[static_cast<int>(node)] = bytes;
      } else {
        result_.repairs.push_back(fmt::format("{} loses {} bytes on NUMA node {}, which is gone",
                                              NameOf(grant.request), bytes, node));
      }
    }
    const StatusOr<Placement> placement = Classify(config_, grant.request);
    if (placement.ok() && placement->by_static_policy) {
      AddBlocks(grant, binding);
    }
    if (!NodesOf(binding).Empty()) {
      result_.bindings.emplace(grant.request.key, std::move(binding));
    }
  }

  Rebuilt Finish() && {
    for (const auto& [id, node] : TableOf({machine_, config_, result_.bindings})) {
      const MemoryAmounts& amounts = node.types.at(kOrdinaryMemory);
      if (amounts.reserved > amounts.allocatable) {
        result_.repairs.push_back(
            fmt::format("NUMA node {} has given {} bytes and has {} to give now: nothing is free",
                        id, amounts.reserved, amounts.allocatable));
      }
    }
    return std::move(result_);
  }

 private:
  void AddBlocks(const sdk::Grant& grant, Binding& binding) {
    const NumaMask had = NumaMask::Parse(grant.allocation.value).value_or(NumaMask());
    const NumaMask nodes = had & machine_.node_mask();
    if (nodes != had && grant.allocation.amount_by_node.empty()) {
      result_.repairs.push_back(
          fmt::format("{} is no longer bound to NUMA nodes {}, which are gone",
                      NameOf(grant.request), ToString(had - nodes)));
    }
    const auto saved = inits_.find(grant.request.key);
    const MemoryBytes bytes =
        saved == inits_.end() ? BytesOf(grant.request).value_or(MemoryBytes()) : saved->second;
    for (const auto& [type, amount] : bytes) {
      if (!nodes.Empty()) {
        binding.blocks.push_back({.nodes = nodes, .type = type, .bytes = amount});
      }
    }
  }

  const Machine& machine_;
  const MemoryPluginConfig& config_;
  const SavedInits& inits_;
  Rebuilt result_;
};

}  // namespace

NumaMask NodesOf(const Binding& binding) {
  if (!binding.blocks.empty()) {
    return binding.blocks.front().nodes;
  }
  NumaMask nodes;
  for (const auto& [node, bytes] : binding.bytes_by_node) {
    nodes.Add(node);
  }
  return nodes;
}

MemoryTable TableOf(const View& view) {
  MemoryTable table = UnusedMemory(view.machine, ReservedOf(view.machine, view.config));
  std::map<int, uint64_t> by_rules;
  for (const auto& [key, binding] : view.bindings) {
    if (binding.blocks.empty()) {
      for (const auto& [node, bytes] : binding.bytes_by_node) {
        by_rules[node] += bytes;
      }
    }
  }
  for (const auto& [node, bytes] : by_rules) {
    HoldOnNode(node, bytes, table);
  }
  for (const auto& [key, binding] : view.bindings) {
    for (const MemoryBlock& block : binding.blocks) {
      Hold(block, table);
    }
  }
  return table;
}

StatusOr<MemoryBytes> BytesOf(const ContainerRequest& request) {
  constexpr std::string_view kHugepages = "hugepages-";
  MemoryBytes bytes;
  for (const auto& [name, amount] : request.requests) {
    if (!(amount >= 0 && amount <= kLargestAmount)) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot place {}: {} is no amount of memory; request bytes from 0 to 2^53",
                    NameOf(request), amount);
    }
    // A pod may call ordinary memory by another name, which the manager maps to ours.
    const bool ordinary = name.substr(0, kHugepages.size()) != kHugepages;
    bytes[ordinary ? kOrdinaryMemory : name] = static_cast<uint64_t>(std::ceil(amount));
  }
  std::erase_if(bytes, [](const auto& entry) { return entry.second == 0; });
  return bytes;
}

std::vector<ContainerKey> EndedInits(const Bindings& bindings, const ContainerRequest& request) {
  std::vector<std::pair<uint64_t, ContainerKey>> ended;
  for (auto bound = bindings.lower_bound({request.key.pod_uid, ""});
       bound != bindings.end() && bound->first.pod_uid == request.key.pod_uid; ++bound) {
    const Binding& binding = bound->second;
    const bool before = request.type != ContainerType::kInit || binding.index < request.index;
    if (bound->first != request.key && binding.type == ContainerType::kInit && before) {
      ended.emplace_back(binding.index, bound->first);
    }
  }
  std::sort(ended.begin(), ended.end());
  std::vector<ContainerKey> keys;
  keys.reserve(ended.size());
  for (auto& [index, key] : ended) {
    keys.push_back(std::move(key));
  }
  return keys;
}

Rebuilt Rebuild(const Machine& machine, const MemoryPluginConfig& config, const SavedInits& inits,
                const sdk::Grants& grants) {
  Rebuilder rebuilder(machine, config, inits);
  for (const auto& [key, grant] : grants) {
    if (grant.allocation.oci_property == kCpusetMems) {
      rebuilder.Add(grant);
    }
  }
  return std::move(rebuilder).Finish();
}

std::map<ContainerKey, ResourceAllocation> ChangedAllocations(const Bindings& bindings,
                                                              const sdk::Grants& grants) {
  std::map<ContainerKey, ResourceAllocation> changed;
  for (const auto& [key, grant] : grants) {
    if (grant.allocation.oci_property != kCpusetMems) {
      continue;
    }
    const auto bound = bindings.find(key);
    const Binding binding = bound == bindings.end() ? Binding() : bound->second;
    ResourceAllocation now = grant.allocation;
    now.value = ToString(NodesOf(binding));
    now.amount_by_node.clear();
    for (const auto& [node, bytes] : binding.bytes_by_node) {
      now.amount_by_node[static_cast<uint64_t>(node)] = bytes;
    }
    now.oci_property = now.value.empty() ? "" : now.oci_property;
    if (now != grant.allocation) {
      changed.emplace(key, std::move(now));
    }
  }
  return changed;
}

}  // namespace qrm::memory
