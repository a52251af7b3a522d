// Offers the cpu plugin's free CPUs to the driver, and has the cpu plugin withhold what it chooses.
#include "manager/admission/driver_step.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "manager/admission/request_rules.h"
#include "manager/drivers/driver_choice.h"
#include "manager/drivers/driver_grant.h"
#include "manager/registry/plugins.h"
#include "plugins/placement/recorded_grants.h"
#include "plugins/placement/requests.h"
#include "plugins/rules/device_nodes.h"
#include "plugins/sdk/calls/compute_calls.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

constexpr double kMilli = 1000;

/// The resource of the memory plugin.
constexpr char kMemory[] = "memory";

double RequestedCpus(const Draft& draft, const placement::AdmissionOptions& options) {
  double cpus = 0;
  for (const auto& [name, amount] : draft.explanation.requests) {
    cpus += PluginNameOf(name, options) == kCpuResource ? amount * ScaleOf(name, options) : 0;
  }
  return cpus;
}

Status CheckMayAsk(const placement::ContainerDemand& demand, const DriverChoice& choice,
                   const placement::AdmissionOptions& options) {
  const std::string& pod_namespace = demand.pod.pod_namespace;
  if (choice.by_operator || IsOpenTo(options.drivers, choice.name, pod_namespace)) {
    return OkStatus();
  }
  return options.permissions.Check(
      pod_namespace,
      {.feature = placement::Feature::kDriver, .name = choice.name, .key = choice.by});
}

Status DriverAway(const DriverChoice& choice, const std::optional<PluginInfo>& driver) {
  if (!driver.has_value() || driver->registered_by == RegisteredBy::kCheckpoint) {
    return Errorf(StatusCode::kUnavailable,
                  "compute driver {} is not registered ({} asks for it); start it, and kubelet's "
                  "next try admits the container",
                  choice.name, choice.by);
  }
  return Errorf(StatusCode::kUnavailable,
                "compute driver {} at {} is not running ({} asks for it): {}, and kubelet's next "
                "try admits the container",
                choice.name, driver->endpoint, choice.by, driver->problem);
}

rules::NodesByResource DeviceNodesOf(const placement::ContainerDemand& demand) {
  rules::DeviceNodes of_pod = rules::ReadDeviceNodes(demand.pod.annotations);
  rules::NodesByResource nodes = std::move(of_pod[demand.container]);
  for (const auto& [name, device] : demand.devices) {
    for (const TopologyHint& hint : device.hints.hints()) {
      nodes[name] |= hint.nodes;
    }
  }
  return nodes;
}

/// Free is what no container is bound to by the records.
std::vector<sdk::MemoryNode> MemoryNodesOf(const Machine& machine,
                                           const checkpoint::NodeState& state) {
  std::vector<sdk::MemoryNode> nodes;
  for (const NumaNode& node : machine.nodes()) {
    const auto bound = state.bound_memory().find(static_cast<uint64_t>(node.id));
    const uint64_t taken = bound == state.bound_memory().end() ? 0 : bound->second;
    if (node.memory_bytes > 0) {
      nodes.push_back({.node = node.id,
                       .kind = std::string(WordOf(node.memory_kind)),
                       .bytes = node.memory_bytes,
                       .free_bytes = node.memory_bytes - std::min(taken, node.memory_bytes)});
    }
  }
  return nodes;
}

sdk::ComputeRequest RequestTo(const DriverPart& part, const Draft& draft, const Machine& machine) {
  const placement::ContainerDemand& demand = draft.demand;
  sdk::ComputeRequest request{.resource = part.resource,
                              .key = draft.key,
                              .pod_namespace = demand.pod.pod_namespace,
                              .pod_name = demand.pod.name,
                              .type = IsApp(demand) ? ContainerType::kMain : demand.type,
                              .spec = part.choice.spec,
                              .available = part.offer.available,
                              .shared = part.offer.shared,
                              .reserved = part.offer.reserved,
                              .hint = part.hint,
                              .milli_cpus = std::llround(part.cpus * kMilli),
                              .annotations = demand.pod.annotations,
                              .labels = demand.pod.labels,
                              .requests = *demand.requests,
                              .limits = *demand.limits,
                              .qos_class = demand.pod.qos_class,
                              .runtime_class = demand.runtime_class,
                              .device_nodes = DeviceNodesOf(demand),
                              .memory_nodes = MemoryNodesOf(machine, *draft.state)};
  if (draft.known != nullptr) {
    const ResourceAllocation& given = draft.known->allocations.at(part.resource);
    request.current = CpuSet::Parse(given.value).value_or(CpuSet());
  }
  return request;
}

/// These policies reject what does not fit the hint, so a driver cannot choose other nodes either.
bool IsStrict(TopologyPolicy policy) {
  return policy == TopologyPolicy::kRestricted || policy == TopologyPolicy::kSingleNumaNode;
}

/// The nodes of `mems` that are neither among `hint` nor memory without CPUs that is near them.
NumaMask AwayFrom(const TopologyHint& hint, const NumaMask& mems, const Machine& machine) {
  NumaMask away;
  for (const int id : mems) {
    const NumaNode* const node = machine.FindNode(id);
    if (node == nullptr || !node->homes.Intersects(hint.nodes)) {
      away.Add(id);
    }
  }
  return away;
}

}  // namespace

bool IsDriversRecord(const checkpoint::ContainerRecord& record) {
  return !DriverOf(record.allocations).empty();
}

Status DriverStep::Choose(Draft& draft, Deadline deadline) const {
  if (draft.known != nullptr) {
    return ChooseAgain(draft, deadline);
  }
  for (const DriverChoice& asked : DriversAskedFor(draft.demand.pod.annotations)) {
    QRM_RETURN_IF_ERROR(CheckMayAsk(draft.demand, asked, options_));
  }
  const double cpus = RequestedCpus(draft, options_);
  QRM_ASSIGN_OR_RETURN(std::optional<DriverChoice> choice,
                       ChooseDriver(draft.demand, cpus, options_.drivers));
  if (!choice.has_value()) {
    return OkStatus();
  }
  draft.failed_resource = sdk::DriverResource(choice->name);
  QRM_RETURN_IF_ERROR(CheckMayAsk(draft.demand, *choice, options_));
  draft.explanation.driver = {.name = choice->name, .by = choice->by, .spec = choice->spec};
  QRM_ASSIGN_OR_RETURN(const bool there, IsThere(draft, *choice));
  if (there) {
    DriverPart& part = draft.driver.emplace(
        DriverPart{.resource = draft.failed_resource, .choice = *std::move(choice), .cpus = cpus});
    QRM_RETURN_IF_ERROR(MakeOfferTo(draft, part, deadline));
  }
  draft.failed_resource.clear();
  return OkStatus();
}

// Without a fallback: the container keeps what it has until its driver is back.
Status DriverStep::ChooseAgain(Draft& draft, Deadline deadline) const {
  if (!draft.is_reviewed && !Compare(*draft.known, draft.demand, options_, plugins_).asks_driver) {
    return OkStatus();
  }
  draft.failed_resource = DriverOf(draft.known->allocations);
  const std::optional<PluginInfo> driver = plugins_.Find(draft.failed_resource);
  QRM_ASSIGN_OR_RETURN(DriverChoice choice,
                       RecordedChoice(draft.demand, draft.failed_resource, options_.drivers));
  const double cpus = RequestedCpus(draft, options_);
  if (cpus > draft.known->allocations.at(draft.failed_resource)->quantity) {
    QRM_RETURN_IF_ERROR(CheckMayAsk(draft.demand, choice, options_));
  }
  if (!driver.has_value() || !driver->live) {
    return DriverAway(choice, driver);
  }
  draft.explanation.driver = {.name = choice.name, .by = choice.by, .spec = choice.spec};
  DriverPart& part = draft.driver.emplace(
      DriverPart{.resource = draft.failed_resource, .choice = std::move(choice), .cpus = cpus});
  QRM_RETURN_IF_ERROR(MakeOfferTo(draft, part, deadline));
  draft.failed_resource.clear();
  return OkStatus();
}

StatusOr<bool> DriverStep::IsThere(Draft& draft, const DriverChoice& choice) const {
  const std::optional<PluginInfo> driver = plugins_.Find(sdk::DriverResource(choice.name));
  if (driver.has_value() && driver->live) {
    return true;
  }
  const auto rules = options_.drivers.find(choice.name);
  Status away = DriverAway(choice, driver);
  if (rules == options_.drivers.end() ||
      rules->second.when_missing == placement::WhenMissing::kRefuse) {
    return away;
  }
  draft.explanation.driver.fallback = MessageOf(away);
  log::Warning("container placed without its compute driver",
               {{"container", NameOf(draft.demand)}, {"driver", choice.name}});
  return false;
}

Status DriverStep::MakeOfferTo(Draft& draft, DriverPart& part, Deadline deadline) const {
  std::optional<CpuAccount> account;
  if (NeedsPlugin(kCpuResource, options_, plugins_)) {
    const std::optional<PluginInfo> plugin = plugins_.Find(kCpuResource);
    if (!plugin.has_value() || !plugin->live) {
      return PluginAway(kCpuResource, draft.demand, options_, plugins_);
    }
    QRM_ASSIGN_OR_RETURN(account, AskCpuPlugin(deadline));
  }
  part.offer = MakeOffer(draft.key, draft.demand.type, machine_, *draft.state,
                         account.has_value() ? &*account : nullptr);
  if (draft.is_reviewed) {  // it need not give all that is requested, nor other nodes
    part.hints = HintList({{.nodes = machine_.NodesOf(part.offer.current), .preferred = true}});
    return OkStatus();
  }
  const std::optional<PluginInfo> driver = plugins_.Find(part.resource);
  if (!driver.has_value() || !driver->options.with_topology_alignment) {
    QRM_ASSIGN_OR_RETURN(part.hints, HintsOf(part.offer, part.cpus, machine_));
  } else {
    auto answers =
        plugins_.AskForEach<calls::ComputeHints>({RequestTo(part, draft, machine_)}, deadline);
    QRM_RETURN_IF_ERROR(answers.front().status());
    part.hints = *std::move(answers.front());
  }
  return OkStatus();
}

StatusOr<CpuAccount> DriverStep::AskCpuPlugin(Deadline deadline) const {
  CpuAccount account;
  auto pools = FanOut<std::vector<sdk::Pool>>(1, deadline, [&](std::size_t, auto answer) {
    plugins_.Ask<calls::GetPools>(kCpuResource, kCpuResource, deadline, std::move(answer));
  });
  if (!pools.front().ok()) {
    return Annotate(pools.front().status(),
                    "compute drivers need a cpu plugin that reports its pools");
  }
  auto offered = FanOut<AllocatableByResource>(1, deadline, [&](std::size_t, auto answer) {
    plugins_.Ask<calls::GetAllocatable>(kCpuResource, {}, deadline, std::move(answer));
  });
  QRM_RETURN_IF_ERROR(offered.front().status());
  account.pools = *std::move(pools.front());
  account.allocatable = (*offered.front())[kCpuResource];
  return account;
}

Status DriverStep::Admit(Draft& draft, Deadline deadline) const {
  if (!draft.driver.has_value()) {
    return OkStatus();
  }
  DriverPart& part = *draft.driver;
  draft.failed_resource = part.resource;
  if (IsStrict(options_.merge.policy) && !part.hint.nodes.Empty()) {
    part.offer.available &= machine_.CpusOf(part.hint.nodes);
  }
  draft.explanation.driver.available = ToString(part.offer.available);
  if (draft.known == nullptr) {
    draft.allocated.push_back(part.resource);
  } else {  // its answer counts once the driver is sent the CPUs as the container's
    draft.explanation.allocations = draft.known->allocations;
    draft.origins = draft.known->origins;
  }
  auto answers =
      plugins_.AskForEach<calls::ComputeAdmit>({RequestTo(part, draft, machine_)}, deadline);
  QRM_RETURN_IF_ERROR(answers.front().status());
  part.grant = *std::move(answers.front());
  const Status good =
      CheckGrant(part.grant, {.offer = part.offer,
                              .cpus = part.cpus,
                              .machine = machine_,
                              .pool_is_followed = NeedsPlugin(kCpuResource, options_, plugins_)});
  draft.bad_answer = good.code() == StatusCode::kInvalidArgument;
  QRM_RETURN_IF_ERROR(good);
  QRM_RETURN_IF_ERROR(AskForMems(part.grant.mems, draft));
  const std::optional<PluginInfo> driver = plugins_.Find(part.resource);
  std::erase_if(draft.explanation.allocations,
                [&](const auto& entry) { return entry.first->starts_with(part.resource); });
  for (auto& [resource, record] : RecordsOf(part.resource, part.grant, machine_)) {
    draft.explanation.allocations[resource] = record;
    draft.origins[resource] = {.plugin = part.resource,
                               .endpoint = driver.has_value() ? driver->endpoint : std::string()};
  }
  draft.explanation.driver.unmet = part.grant.unmet;
  draft.explanation.driver.warnings = part.grant.warnings;
  return Withhold(draft, part, deadline);
}

Status DriverStep::AskForMems(const NumaMask& mems, Draft& draft) const {
  const auto memory = std::ranges::find(draft.requests, kMemory, &ContainerRequest::resource);
  if (mems.Empty() || memory == draft.requests.end()) {
    return OkStatus();
  }
  const TopologyHint merged = memory->hint.value_or(TopologyHint());
  const NumaMask away = AwayFrom(merged, mems, machine_);
  if (IsStrict(options_.merge.policy) && !merged.nodes.Empty() && !away.Empty()) {
    draft.bad_answer = true;
    return Errorf(
        StatusCode::kInvalidArgument,
        "it wants the container's memory on NUMA nodes {}, of which {} are not near nodes "
        "{}, the hint under topology-policy {}; make the driver follow the hint, or use a "
        "softer policy",
        ToString(mems), ToString(away), ToString(merged.nodes), ToString(options_.merge.policy));
  }
  memory->hint = {.nodes = mems, .preferred = true};
  return OkStatus();
}

// Restored as the cpu plugin's own grant: the plugin withholds these CPUs until the container is
// removed, also after a restart.
Status DriverStep::Withhold(Draft& draft, const DriverPart& part, Deadline deadline) const {
  const std::optional<PluginInfo> plugin = plugins_.Find(kCpuResource);
  if (!NeedsPlugin(kCpuResource, options_, plugins_) || !plugin.has_value()) {
    return OkStatus();
  }
  draft.failed_resource = kCpuResource;
  draft.allocated.emplace_back(kCpuResource);
  const ResourceAllocation withheld =
      WithheldBy(part.grant, machine_, part.offer.PoolWithCurrent());
  const checkpoint::ContainerRecord record{.type = draft.demand.type,
                                           .index = draft.demand.index,
                                           .requests = draft.explanation.requests,
                                           .runtime_class = draft.demand.runtime_class,
                                           .allocations = {{kCpuResource, withheld}}};
  calls::Restore::Request taught;
  taught.grants.emplace(draft.key, RecordedGrant(draft.demand.pod, draft.demand.container, record,
                                                 kCpuResource, options_));
  const Status kept = plugins_.Tell<calls::Restore>({kCpuResource}, taught, deadline)[kCpuResource];
  if (!kept.ok()) {
    return Annotate(kept, "it does not withhold the CPUs that the compute driver gave");
  }
  draft.explanation.allocations[kCpuResource] = withheld;
  draft.origins[kCpuResource] = {.plugin = kCpuResource, .endpoint = plugin->endpoint};
  draft.failed_resource.clear();
  return OkStatus();
}

Status DriverStep::CheckMemory(Draft& draft) {
  if (!draft.driver.has_value()) {
    return OkStatus();
  }
  const auto memory = draft.explanation.allocations.find(kMemory);
  const Status good =
      CheckMems(draft.driver->grant,
                memory == draft.explanation.allocations.end() ? nullptr : &*memory->second);
  if (!good.ok()) {
    draft.failed_resource = draft.driver->resource;
    draft.bad_answer = true;
  }
  return good;
}

}  // namespace qrm::manager
