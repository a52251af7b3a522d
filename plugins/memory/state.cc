// Accounts for the memory of each NUMA node.
#include "plugins/memory/state.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "plugins/memory/books.h"
#include "plugins/memory/policy.h"
#include "plugins/rules/select.h"

namespace qrm::memory {
namespace {

constexpr double kLargestAmount = 9007199254740992.0;  // 2^53: whole bytes in a double up to here

/// Collects the repairs of one rebuild.
class Rebuilder {
 public:
  Rebuilder(const Machine& machine, const MemoryPluginConfig& config, const SavedInits& inits)
      : machine_(machine), config_(config), inits_(inits) {}

  void Add(const sdk::Grant& grant) {
    Binding binding{.tenant = TenantOf(config_, grant.request),
                    .type = grant.request.type,
                    .index = grant.request.index};
    for (const auto& [node, bytes] : grant.allocation->amount_by_node) {
      if (machine_.FindNode(static_cast<int>(node)) != nullptr) {
        binding.bytes_by_node[static_cast<int>(node)] = bytes;
      } else {
        result_.repairs.push_back(
            fmt::format("{} loses {} bytes on NUMA node {}, which no longer exists",
                        rules::NameOf(grant.request), bytes, node));
      }
    }
    const StatusOr<Placement> placement = Classify(config_, grant.request);
    if (placement.ok() && placement->by_static_policy) {
      AddBlocks(grant, binding);
    } else if (!binding.bytes_by_node.empty()) {
      const std::optional<BindingRule> rule = placement.ok() ? placement->rule : std::nullopt;
      const bool even = rule.has_value() && rule->numa == rules::NumaSpan::kEven;
      AddBlocksOfRule(grant, even ? Split::kAsItIs : Split::kAnywhere, binding);
    }
    if (!NodesOf(binding).Empty()) {
      result_.bindings.emplace(grant.request.key, std::move(binding));
    }
  }

  Rebuilt Finish() && {
    const Books books({machine_, config_, result_.bindings});
    for (const auto& [id, node] : books.table()) {
      const MemoryAmounts& amounts = node.types.at(kOrdinaryMemory);
      if (amounts.reserved > amounts.allocatable) {
        result_.repairs.push_back(
            fmt::format("NUMA node {} has allocated {} bytes, more than its {} allocatable ones: "
                        "nothing is free",
                        id, amounts.reserved, amounts.allocatable));
      }
    }
    return std::move(result_);
  }

 private:
  enum class Split { kAsItIs, kAnywhere };

  /// The container's allocation, even if it requests more by now.
  static void AddBlocksOfRule(const sdk::Grant& grant, Split split, Binding& binding) {
    binding.by_rule = true;
    MemoryBlock ordinary{.type = kOrdinaryMemory};
    for (const auto& [node, bytes] : binding.bytes_by_node) {
      if (split == Split::kAsItIs) {
        binding.blocks.push_back({.nodes = {node}, .type = kOrdinaryMemory, .bytes = bytes});
      }
      ordinary.nodes.Add(node);
      ordinary.bytes += bytes;
    }
    const NumaMask nodes = ordinary.nodes;
    if (split == Split::kAnywhere) {
      binding.blocks.push_back(std::move(ordinary));
    }
    for (const auto& [type, bytes] : BytesOf(grant.request).value_or(MemoryBytes())) {
      if (type != kOrdinaryMemory) {
        binding.blocks.push_back({.nodes = nodes, .type = type, .bytes = bytes});
      }
    }
  }

  void AddBlocks(const sdk::Grant& grant, Binding& binding) {
    const NumaMask had = NumaMask::Parse(grant.allocation->value).value_or(NumaMask());
    const NumaMask nodes = had & machine_.node_mask();
    if (nodes != had && grant.allocation->amount_by_node.empty()) {
      result_.repairs.push_back(
          fmt::format("{} is no longer bound to NUMA nodes {}, which no longer exist",
                      rules::NameOf(grant.request), ToString(had - nodes)));
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
  NumaMask nodes;
  for (const MemoryBlock& block : binding.blocks) {
    nodes |= block.nodes;
  }
  return nodes;
}

View WithBindings(const View& view, const Bindings& bindings) {
  return {view.machine, view.config, bindings, view.unused};
}

MemoryTable TableOf(const View& view) {
  return Books(view).table();
}

StatusOr<MemoryBytes> BytesOf(const ContainerRequest& request) {
  MemoryBytes bytes;
  for (const auto& [name, amount] : request.requests) {
    if (!(amount >= 0 && amount <= kLargestAmount)) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot place {}: {} is not an amount of memory; request 0 to 2^53 bytes",
                    rules::NameOf(request), amount);
    }
    // A pod may call ordinary memory by another name, which the manager maps to ours.
    const bool ordinary = !IsHugepages(name);
    bytes[ordinary ? kOrdinaryMemory : name] =
        static_cast<uint64_t>(std::ceil(ordinary ? amount * request.scale : amount));
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
  std::ranges::sort(ended);
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
    if (grant.allocation->oci_property == kCpusetMems) {
      rebuilder.Add(grant);
    }
  }
  return std::move(rebuilder).Finish();
}

std::map<ContainerKey, ResourceAllocation> ChangedAllocations(const Bindings& bindings,
                                                              const sdk::Grants& grants) {
  std::map<ContainerKey, ResourceAllocation> changed;
  for (const auto& [key, grant] : grants) {
    if (grant.allocation->oci_property != kCpusetMems) {
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

using nlohmann::json;

std::string SaveInits(const Bindings& bindings) {
  json inits = json::array();
  for (const auto& [key, binding] : bindings) {
    if (binding.type != ContainerType::kInit || binding.blocks.empty()) {
      continue;
    }
    json bytes = json::object();
    for (const MemoryBlock& block : binding.blocks) {
      bytes[block.type] = block.bytes;
    }
    inits.push_back({{"pod", key.pod_uid}, {"container", key.container}, {"bytes", bytes}});
  }
  return inits.empty() ? "" : json{{"init_containers", inits}}.dump();
}

StatusOr<SavedInits> LoadInits(const std::string& text) {
  SavedInits inits;
  try {
    const json saved = json::parse(text.empty() ? R"({"init_containers":[]})" : text);
    for (const json& init : saved.at("init_containers")) {
      inits[{init.at("pod").get<std::string>(), init.at("container").get<std::string>()}] =
          init.at("bytes").get<MemoryBytes>();
    }
  } catch (const json::exception& error) {
    return Errorf(StatusCode::kDataLoss,
                  "cannot read the saved memory of init containers, so that their whole requests "
                  "count: {1}: '{0}'",
                  text, error.what());
  }
  return inits;
}

}  // namespace qrm::memory
