// Keeps the nic plugin's state between the policy's decisions.
#include "plugins/nic/nic_plugin.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "plugins/nic/policy.h"
#include "plugins/nic/state.h"

namespace qrm::nic {
namespace {

class NicPlugin final : public sdk::ResourcePlugin {
 public:
  NicPlugin(NicPluginConfig config, Machine machine, std::vector<NicInfo> nics)
      : config_(std::move(config)), machine_(std::move(machine)), nics_(std::move(nics)) {}

  Status Restore(const sdk::Grants& grants) override {
    state_ = Rebuild(config_, grants);
    return OkStatus();
  }

  StatusOr<HintList> Hints(const ContainerRequest& request) override {
    return NicHints(ViewOf(), request);
  }

  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request,
                                        const TopologyHint& hint) override {
    auto former = state_.extract(request.key);
    StatusOr<Decision> decision = PlaceContainer(ViewOf(), request, hint);
    if (!decision.ok()) {
      state_.insert(std::move(former));
      return decision.status();
    }
    state_[request.key] = std::move(decision->use);
    return std::move(decision->allocation);
  }

  void Remove(const std::vector<ContainerKey>& keys) override {
    for (const ContainerKey& key : keys) {
      state_.erase(key);
    }
  }

  AllocatableResource Allocatable() const override {
    AllocatableResource resource = {.is_scalar_resource = config_.request_is_bandwidth};
    for (const NicInfo& nic : nics_) {
      const double amount = config_.request_is_bandwidth
                                ? static_cast<double>(std::min(nic.egress_mbps, nic.ingress_mbps))
                                : 1;
      resource.capacity += amount;
      if (nic.node) {
        resource.capacity_by_node[*nic.node] += amount;
      }
    }
    resource.allocatable = resource.capacity;
    resource.allocatable_by_node = resource.capacity_by_node;
    return resource;
  }

  std::string ExportState(const sdk::Grants& grants) const override {
    return ExportJson(ViewOf(), grants);
  }

 private:
  View ViewOf() const { return {machine_, config_, nics_, state_}; }

  const NicPluginConfig config_;
  const Machine machine_;
  const std::vector<NicInfo> nics_;
  NicState state_;
};

}  // namespace

StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeNicPlugin(
    const NicPluginConfig& config, const Machine& machine, const AddressesByInterface& addresses) {
  QRM_ASSIGN_OR_RETURN(std::vector<NicInfo> nics, FindNics(config, machine, addresses));
  return std::unique_ptr<sdk::ResourcePlugin>(
      std::make_unique<NicPlugin>(config, machine, std::move(nics)));
}

}  // namespace qrm::nic
