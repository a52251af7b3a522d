// Keeps the memory plugin's state between the policy's decisions.
#include "plugins/memory/memory_plugin.h"

#include <cstddef>
#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "plugins/memory/books.h"
#include "plugins/memory/policy.h"
#include "plugins/memory/room.h"
#include "plugins/memory/state.h"
#include "plugins/rules/pod_entries_json.h"

namespace qrm::memory {
namespace {

using nlohmann::ordered_json;

/// Bytes of `type` that the container has on `node`; absent when it has none there. For blocks on
/// several nodes, only the split of ordinary memory is known.
std::optional<uint64_t> BytesOn(const Binding& binding, const std::string& type, int node) {
  if (type == kOrdinaryMemory) {
    const auto bytes = binding.bytes_by_node.find(node);
    return bytes == binding.bytes_by_node.end() ? std::nullopt : std::optional(bytes->second);
  }
  for (const MemoryBlock& block : binding.blocks) {
    if (block.type == type && block.nodes == NumaMask{node}) {
      return block.bytes;
    }
  }
  return std::nullopt;
}

/// Pod UID -> container -> its bytes of `type` on `node`.
ordered_json EntriesOn(const Bindings& bindings, const std::string& type, int node) {
  ordered_json pods = ordered_json::object();
  for (const auto& [key, binding] : bindings) {
    if (const auto bytes = BytesOn(binding, type, node); bytes.has_value()) {
      pods[key.pod_uid][key.container] = std::to_string(*bytes);
    }
  }
  return pods;
}

ordered_json AmountsJson(const MemoryAmounts& amounts, ordered_json entries) {
  return {
      {"Allocated", std::to_string(amounts.reserved)},
      {"allocatable", std::to_string(amounts.allocatable)},
      {"free", std::to_string(amounts.free)},
      {"pod_entries", std::move(entries)},
      {"systemReserved", std::to_string(amounts.system_reserved)},
      {"total", std::to_string(amounts.total)},
  };
}

/// The state as JSON, in the form of the QoS Resource Manager proposal: `machineState` by type and
/// NUMA node, sizes as text, and `pod_resource_entries`. Indented by four.
std::string ExportJson(const View& view, const sdk::Grants& grants) {
  ordered_json types = {{kOrdinaryMemory, ordered_json::object()}};
  for (const auto& [id, node] : TableOf(view)) {
    for (const auto& [type, amounts] : node.types) {
      types[type][std::to_string(id)] = AmountsJson(amounts, EntriesOn(view.bindings, type, id));
    }
  }
  ordered_json entries = ordered_json::object();
  if (!grants.empty()) {
    entries["memory"] = rules::PodEntriesJson(grants);
  }
  const ordered_json state = {
      {"machineState", std::move(types)},
      {"pod_resource_entries", std::move(entries)},
  };
  return state.dump(4);
}

class MemoryPlugin final : public sdk::ResourcePlugin {
 public:
  MemoryPlugin(MemoryPluginConfig config, Machine machine)
      : config_(std::move(config)),
        machine_(std::move(machine)),
        unused_(UnusedTable(machine_, config_)) {}

  Status LoadState(const std::string& saved) override {
    QRM_ASSIGN_OR_RETURN(saved_inits_, LoadInits(saved));
    return OkStatus();
  }

  Status Restore(const sdk::Grants& grants) override {
    Rebuilt rebuilt = Rebuild(machine_, config_, std::exchange(saved_inits_, {}), grants);
    for (const std::string& repair : rebuilt.repairs) {
      log::Warning("memory allocation repaired", {{"repair", repair}});
    }
    bindings_ = std::move(rebuilt.bindings);
    all_have_theirs_ = false;
    return OkStatus();
  }

  bool AnswersAreQuick() const override { return true; }

  StatusOr<HintList> Hints(const ContainerRequest& request) override {
    return MemoryHints(ViewOf(), request);
  }

  HintList HeldHints(const sdk::Grant& grant, const ContainerRequest& request) override {
    const StatusOr<Placement> placement = Classify(config_, request);
    if (!placement.ok() || !placement->by_static_policy) {
      return ResourcePlugin::HeldHints(grant, request);
    }
    return Hints(request).value_or(HintList::Impossible());
  }

  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request,
                                        const TopologyHint& hint) override {
    auto former = bindings_.extract(request.key);
    StatusOr<Decision> decision = PlaceContainer(
        ViewOf(), request, hint, former.empty() ? NumaMask() : NodesOf(former.mapped()));
    if (!decision.ok()) {
      bindings_.insert(std::move(former));
      return decision.status();
    }
    ResourceAllocation allocation = std::move(decision->allocation);
    all_have_theirs_ = all_have_theirs_ && decision->inits.empty() && decision->moved.empty();
    Note(request.key, *std::move(decision), bindings_);
    return allocation;
  }

  void Remove(const std::vector<ContainerKey>& keys) override {
    for (const ContainerKey& key : keys) {
      bindings_.erase(key);
    }
  }

  StatusOr<std::map<ContainerKey, ResourceAllocation>> Reconcile(
      const sdk::Grants& grants) override {
    if (all_have_theirs_) {
      return std::map<ContainerKey, ResourceAllocation>();
    }
    std::map<ContainerKey, ResourceAllocation> changed = ChangedAllocations(bindings_, grants);
    all_have_theirs_ = changed.empty();
    return changed;
  }

  AllocatableResource Allocatable() const override {
    return AllocatableByType().at(kOrdinaryMemory);
  }

  AllocatableByResource AllocatableBeside() const override {
    AllocatableByResource hugepages = AllocatableByType();
    hugepages.erase(kOrdinaryMemory);
    std::erase_if(hugepages, [](const auto& type) { return type.second.capacity == 0; });
    return hugepages;
  }

  std::string SaveState() const override {
    return config_.by_static_policy ? SaveInits(bindings_) : "";
  }

  std::unique_ptr<sdk::ResourcePlugin> Fork() const override {
    auto fork = std::make_unique<MemoryPlugin>(config_, machine_);
    fork->bindings_ = bindings_;
    return fork;
  }

  std::string ExportState(const sdk::Grants& grants) const override {
    return ExportJson(ViewOf(), grants);
  }

 private:
  AllocatableByResource AllocatableByType() const {
    AllocatableByResource resources = {{kOrdinaryMemory, {.is_scalar_resource = true}}};
    for (const auto& [id, node] : unused_) {
      for (const auto& [type, amounts] : node.types) {
        AllocatableResource& resource = resources[type];
        resource.is_scalar_resource = true;
        resource.allocatable_by_node[id] = static_cast<double>(amounts.allocatable);
        resource.capacity_by_node[id] = static_cast<double>(amounts.total);
        resource.allocatable += static_cast<double>(amounts.allocatable);
        resource.capacity += static_cast<double>(amounts.total);
      }
    }
    return resources;
  }

  View ViewOf() const { return {machine_, config_, bindings_, &unused_}; }

  const MemoryPluginConfig config_;
  const Machine machine_;
  const MemoryTable unused_;
  SavedInits saved_inits_;  ///< between LoadState and Restore
  Bindings bindings_;
  bool all_have_theirs_ = false;  ///< each grant agrees with bindings_
};

}  // namespace

StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeMemoryPlugin(const MemoryPluginConfig& config,
                                                                const Machine& machine) {
  std::size_t missing = 0;
  for (const auto& [node, reserved] : config.reserved_bytes) {
    if (machine.FindNode(node) != nullptr) {
      continue;
    }
    if (++missing == config.reserved_bytes.size()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot reserve memory on NUMA node {}: the machine has nodes {}; correct "
                    "reserved-memory",
                    node, ToString(machine.node_mask()));
    }
    log::Warning("reserved memory ignored: its NUMA node does not exist", {{"missing_node", node}});
  }
  for (const auto& [role, rule] : config.roles) {
    if (NodesOfKinds(machine, rule.kinds).Empty()) {
      log::Warning("containers of a role are rejected: the machine has no memory of its kinds",
                   {{"role", role}, {"kinds", TextOf(rule.kinds)}});
    }
  }
  return std::unique_ptr<sdk::ResourcePlugin>(std::make_unique<MemoryPlugin>(config, machine));
}

}  // namespace qrm::memory
