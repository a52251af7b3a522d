// Keeps the memory plugin's state between the policy's decisions.
#include "plugins/memory/memory_plugin.h"

#include <cstddef>
#include <utility>

#include "api/base/log.h"
#include "plugins/memory/policy.h"
#include "plugins/memory/state.h"

namespace qrm::memory {
namespace {

class MemoryPlugin final : public sdk::ResourcePlugin {
 public:
  MemoryPlugin(MemoryPluginConfig config, Machine machine)
      : config_(std::move(config)), machine_(std::move(machine)) {}

  Status Restore(const sdk::Grants& grants) override {
    Rebuilt rebuilt = Rebuild(machine_, config_, grants);
    for (const std::string& repair : rebuilt.repairs) {
      log::Warning("memory allocation repaired", {{"repair", repair}});
    }
    state_ = std::move(rebuilt.state);
    return OkStatus();
  }

  StatusOr<HintList> Hints(const ContainerRequest& request) override {
    return MemoryHints(ViewOf(), request);
  }

  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request,
                                        const TopologyHint& hint) override {
    auto former = state_.extract(request.key);
    StatusOr<Decision> decision = PlaceContainer(ViewOf(), request, hint);
    if (!decision.ok()) {
      state_.insert(std::move(former));
      return decision.status();
    }
    if (decision->binding) {
      state_[request.key] = *std::move(decision->binding);
    }
    return std::move(decision->allocation);
  }

  void Remove(const std::vector<ContainerKey>& keys) override {
    for (const ContainerKey& key : keys) {
      state_.erase(key);
    }
  }

  StatusOr<std::map<ContainerKey, ResourceAllocation>> Reconcile(
      const sdk::Grants& grants) override {
    return ChangedAllocations(state_, grants);
  }

  AllocatableResource Allocatable() const override {
    AllocatableResource resource = {.is_scalar_resource = true};
    for (const auto& [node, book] : BooksOf(ViewOf())) {
      resource.allocatable_by_node[node] = static_cast<double>(book.allocatable);
      resource.capacity_by_node[node] = static_cast<double>(book.total);
      resource.allocatable += static_cast<double>(book.allocatable);
      resource.capacity += static_cast<double>(book.total);
    }
    return resource;
  }

  std::string ExportState(const sdk::Grants& grants) const override {
    return ExportJson(ViewOf(), grants);
  }

 private:
  View ViewOf() const { return {machine_, config_, state_}; }

  const MemoryPluginConfig config_;
  const Machine machine_;
  MemoryState state_;
};

}  // namespace

StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeMemoryPlugin(const MemoryPluginConfig& config,
                                                                const Machine& machine) {
  std::size_t missing = 0;
  for (const auto& [node, bytes] : config.reserved_bytes) {
    if (machine.FindNode(node) != nullptr) {
      continue;
    }
    if (++missing == config.reserved_bytes.size()) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot reserve {} bytes on NUMA node {}: the machine has nodes {}; correct "
                    "reserved-memory",
                    bytes, node, ToString(machine.node_mask()));
    }
    log::Warning("reserved memory left out", {{"missing_node", node}, {"bytes", bytes}});
  }
  return std::unique_ptr<sdk::ResourcePlugin>(std::make_unique<MemoryPlugin>(config, machine));
}

}  // namespace qrm::memory
