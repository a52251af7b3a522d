// Keeps the nic plugin's state between the policy's decisions.
#include "plugins/nic/nic_plugin.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/base/log.h"
#include "api/base/mutex.h"
#include "plugins/nic/policy.h"
#include "plugins/nic/state.h"
#include "plugins/rules/pod_entries_json.h"

namespace qrm::nic {
namespace {

using nlohmann::ordered_json;

constexpr char kNoNode[] = "none";  // the key of NICs that are near no node

ordered_json BandwidthJson(uint64_t capacity, double used) {
  return {
      {"Capacity", capacity}, {"Allocated", used}, {"Free", static_cast<double>(capacity) - used}};
}

ordered_json NicJson(const NicInfo& nic, const Load& load) {
  ordered_json json = {{"interface_name", nic.id.interface}};
  if (nic.node) {
    json["nuam_node"] = *nic.node;  // the proposal's spelling, which its readers expect
  }
  json["address"] = ordered_json::object();
  if (!nic.ipv4.empty()) {
    json["address"]["ipv4"] = nic.ipv4;
  }
  if (!nic.ipv6.empty()) {
    json["address"]["ipv6"] = nic.ipv6;
  }
  if (!nic.id.netns.empty()) {
    json["netns"] = nic.id.netns;
  }
  if (!nic.problem.empty()) {
    json["problem"] = nic.problem;
  }
  if (nic.egress_mbps > 0) {
    json["egress_state"] = BandwidthJson(nic.egress_mbps, load.mbps);
  }
  if (nic.ingress_mbps > 0) {
    json["ingress_state"] = BandwidthJson(nic.ingress_mbps, load.mbps);
  }
  return json;
}

using NicsPtr = std::shared_ptr<const std::vector<NicInfo>>;

void LogChange(const NicInfo& now, const std::string& problem_before) {
  if (now.problem == problem_before) {
    return;
  }
  if (now.problem.empty()) {
    log::Info("NIC is healthy again", {{"nic", now.id.interface}, {"netns", now.id.netns}});
  } else {
    log::Warning("NIC is unhealthy; new containers get other NICs",
                 {{"nic", now.id.interface}, {"netns", now.id.netns}, {"problem", now.problem}});
  }
}

void LogChanges(const std::vector<NicInfo>& before, const std::vector<NicInfo>& now) {
  for (const NicInfo& nic : now) {
    const NicInfo* const known = FindNic(before, nic.id);
    LogChange(nic, known == nullptr ? "" : known->problem);
  }
}

PlacedQuantity PlaceOf(const NicInfo& nic, double amount) {
  PlacedQuantity place{.amount = amount,
                       .node = static_cast<uint64_t>(*nic.node),
                       .name = nic.id.interface,
                       .type = "NIC"};
  if (!nic.id.netns.empty()) {
    place.annotations["netns"] = nic.id.netns;
  }
  return place;
}

/// The state as JSON, in the form of the QoS Resource Manager proposal. Indented by four.
std::string ExportJson(const View& view, const sdk::Grants& grants) {
  ordered_json nodes = ordered_json::object();
  for (const int node : view.machine.node_mask()) {
    nodes[std::to_string(node)]["nics"] = ordered_json::array();
  }
  for (const NicInfo& nic : view.nics) {
    const std::string key = nic.node ? std::to_string(*nic.node) : kNoNode;
    nodes[key]["nics"].push_back(NicJson(nic, view.state.LoadOf(nic.id)));
  }
  const ordered_json state = {{"machineState", std::move(nodes)},
                              {"pod_entries", rules::PodEntriesJson(grants)}};
  return state.dump(4);
}

/// Threads: OnFacts is the watch's; the others are the SDK's, see ResourcePlugin.
class NicPlugin final : public sdk::ResourcePlugin {
 public:
  NicPlugin(NicPluginConfig config, Machine machine, std::vector<NicInfo> nics,
            std::unique_ptr<FactsWatch> watch)
      : config_(std::move(config)), machine_(std::move(machine)), watch_(std::move(watch)) {
    Publish(std::move(nics));
    if (watch_ != nullptr) {
      watch_->Start([this](const NicFacts& facts) { OnFacts(facts); });
    }
  }

  Status Restore(const sdk::Grants& grants) override {
    state_ = Rebuild(config_, grants);
    told_.reset();
    return OkStatus();
  }

  bool AnswersAreQuick() const override { return true; }

  StatusOr<HintList> Hints(const ContainerRequest& request) override {
    const NicsPtr nics = Nics();
    return NicHints(ViewOf(*nics), request);
  }

  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request,
                                        const TopologyHint& hint) override {
    const NicsPtr nics = Nics();
    std::optional<Use> former = state_.Take(request.key);
    StatusOr<Decision> decision = PlaceContainer(ViewOf(*nics), request, hint);
    if (!decision.ok()) {
      if (former.has_value()) {
        state_.Put(request.key, *std::move(former));
      }
      return decision.status();
    }
    state_.Put(request.key, std::move(decision->use));
    return std::move(decision->allocation);
  }

  void Remove(const std::vector<ContainerKey>& keys) override {
    for (const ContainerKey& key : keys) {
      state_.Take(key);
    }
  }

  /// Updates the containers of NICs that changed. Cost: O(1) while all have the current state.
  StatusOr<std::map<ContainerKey, ResourceAllocation>> Reconcile(
      const sdk::Grants& grants) override {
    NicsPtr nics = Nics();
    std::map<ContainerKey, ResourceAllocation> changed;
    if (told_ == nics) {
      return changed;
    }
    for (const auto& [key, grant] : grants) {
      const NicInfo* const nic = FindNic(*nics, NicOf(grant.allocation));
      if (nic == nullptr) {
        continue;  // no longer configured: its last state stays
      }
      ResourceAllocation told = Retold(grant.allocation, *nic, config_.names);
      if (told != grant.allocation) {
        log::Info("container's NIC changed",
                  {{"pod", grant.request.pod_namespace + "/" + grant.request.pod_name},
                   {"uid", key.pod_uid},
                   {"container", key.container},
                   {"nic", nic->id.interface},
                   {"problem", nic->problem}});
        changed.emplace(key, std::move(told));
      }
    }
    told_ = changed.empty() ? std::move(nics) : nullptr;
    return changed;
  }

  /// Unhealthy NICs only count for the capacity.
  AllocatableResource Allocatable() const override {
    AllocatableResource resource = {.is_scalar_resource = config_.request_is_bandwidth};
    const NicsPtr nics = Nics();
    for (const NicInfo& nic : *nics) {
      const double amount = config_.request_is_bandwidth
                                ? static_cast<double>(std::min(nic.egress_mbps, nic.ingress_mbps))
                                : 1;
      const double usable = nic.problem.empty() ? amount : 0;
      resource.capacity += amount;
      resource.allocatable += usable;
      if (nic.node) {
        resource.capacity_by_node[*nic.node] += amount;
        resource.allocatable_by_node[*nic.node] += usable;
        resource.capacity_places.push_back(PlaceOf(nic, amount));
        resource.allocatable_places.push_back(PlaceOf(nic, usable));
      }
    }
    return resource;
  }

  /// The NIC as it is now; none if it has no node.
  std::vector<PlacedQuantity> PlacesOf(const ContainerKey& /*container*/,
                                       const ResourceAllocation& allocation) const override {
    const NicsPtr nics = Nics();
    const NicInfo* const nic = FindNic(*nics, NicOf(allocation));
    if (nic == nullptr || !nic->node.has_value()) {
      return {};
    }
    return {PlaceOf(*nic, config_.request_is_bandwidth ? allocation.quantity : 1)};
  }

  void Retire() override { watch_.reset(); }

  std::unique_ptr<sdk::ResourcePlugin> Fork() const override {
    auto fork = std::make_unique<NicPlugin>(config_, machine_, *Nics(), nullptr);
    fork->state_ = state_;
    return fork;
  }

  std::string ExportState(const sdk::Grants& grants) const override {
    const NicsPtr nics = Nics();
    return ExportJson(ViewOf(*nics), grants);
  }

 private:
  View ViewOf(const std::vector<NicInfo>& nics) const { return {machine_, config_, nics, state_}; }

  NicsPtr Nics() const {
    const MutexLock lock(mutex_);
    return nics_;
  }
  void Publish(std::vector<NicInfo> nics) {
    auto published = std::make_shared<const std::vector<NicInfo>>(std::move(nics));
    const MutexLock lock(mutex_);
    nics_ = std::move(published);
  }

  void OnFacts(const NicFacts& facts) {
    const NicsPtr before = Nics();
    StatusOr<std::vector<NicInfo>> now = FindNics(config_, machine_, facts, *before);
    if (!now.ok() || *now == *before) {  // the configuration fit at the start
      return;
    }
    LogChanges(*before, *now);
    Publish(*std::move(now));
    NotifyChanged();
  }

  const NicPluginConfig config_;
  const Machine machine_;
  NicState state_;
  NicsPtr told_;  ///< the NICs that all grants agree with, if any
  mutable Mutex mutex_;
  NicsPtr nics_ QRM_GUARDED_BY(mutex_);
  std::unique_ptr<FactsWatch> watch_;  ///< last: it calls until it is destroyed
};

}  // namespace

StatusOr<std::unique_ptr<sdk::ResourcePlugin>> MakeNicPlugin(const NicPluginConfig& config,
                                                             const Machine& machine,
                                                             const NicFacts& facts,
                                                             std::unique_ptr<FactsWatch> watch) {
  QRM_ASSIGN_OR_RETURN(std::vector<NicInfo> nics, FindNics(config, machine, facts));
  LogChanges({}, nics);
  return std::unique_ptr<sdk::ResourcePlugin>(
      std::make_unique<NicPlugin>(config, machine, std::move(nics), std::move(watch)));
}

}  // namespace qrm::nic
