// The steps of an admission without the daemon: nothing is committed, no process is called.
#include "plugins/placement/walk.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "api/base/errorf.h"
#include "plugins/cpu/config/classify.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/cpu/cpu_plugin.h"
#include "plugins/cpu/elastic.h"
#include "plugins/cpu/policy.h"
#include "plugins/memory/memory_plugin.h"
#include "plugins/memory/policy.h"
#include "plugins/nic/policy.h"
#include "plugins/placement/requests.h"
#include "topology/cpu_layout.h"
#include "topology/hint_generation.h"

namespace qrm::placement {
namespace {

using HintByResource = std::map<std::string, TopologyHint>;

/// Whether a plugin that runs inside the node's qrmd places `resource`.
bool IsPlaced(const NodeModel& model, const std::string& resource) {
  const auto runs = [&model](const char* plugin) {
    return std::find(model.plugins.begin(), model.plugins.end(), plugin) != model.plugins.end();
  };
  return (resource == cpu::kResource && runs("cpu")) ||
         (resource == memory::kResource && runs("memory")) ||
         (resource == model.nic.resource && runs("nic"));
}

/// The resources that every container uses and that the node places.
std::vector<std::string> NativesOf(const NodeModel& model) {
  std::vector<std::string> natives = model.options.native_resources;
  std::erase_if(natives, [&](const std::string& resource) { return !IsPlaced(model, resource); });
  return natives;
}

/// One request for each plugin. Errors: as RequestsOf.
StatusOr<Requests> RequestsOfOne(const NodeModel& model, const ContainerDemand& demand,
                                 const std::vector<std::string>& natives) {
  const std::map<std::string, double> amounts = AllRequests(demand, model.options, natives);
  QRM_RETURN_IF_ERROR(CheckWishes(demand, amounts, model.options));
  Requests requests;
  for (const auto& asked : amounts) {
    const std::string& resource = PluginNameOf(asked.first, model.options);
    if (!IsPlaced(model, resource)) {
      continue;
    }
    if (std::any_of(requests.begin(), requests.end(),
                    [&](const ContainerRequest& other) { return other.resource == resource; })) {
      return Errorf(StatusCode::kInvalidArgument, "the pod requests {} under two names", resource);
    }
    requests.push_back(MakeRequest(demand, resource, asked, model.options));
  }
  return requests;
}

/// The pod as the node asks its plugins about it: a pod that is skipped asks for nothing.
PodDemands AskedOf(const NodeModel& model, const PodDemands& pod) {
  PodDemands asked;
  for (const ContainerDemand& demand : pod) {
    asked.push_back(
        ReasonToSkip(demand, model.options).empty() ? demand : AskingForNothing(demand, nullptr));
  }
  return asked;
}

/// One request for each plugin, for each container of `asked`. Errors: as RequestsOf.
StatusOr<std::vector<Requests>> RequestsOfAsked(const NodeModel& model, const PodDemands& asked) {
  const std::vector<std::string> natives = NativesOf(model);
  std::vector<Requests> all;
  for (const ContainerDemand& demand : asked) {
    QRM_ASSIGN_OR_RETURN(Requests requests, RequestsOfOne(model, demand, natives));
    all.push_back(std::move(requests));
  }
  return all;
}

/// Scope pod: what the containers need together, asked as the main one of them.
StatusOr<Requests> Together(const NodeModel& model, const PodDemands& pod) {
  const std::vector<std::string> natives = NativesOf(model);
  std::vector<const ContainerDemand*> demands;
  demands.reserve(pod.size());
  for (const ContainerDemand& demand : pod) {
    demands.push_back(&demand);
  }
  QRM_ASSIGN_OR_RETURN(Requests requests,
                       RequestsOfOne(model, WholePod(demands, model.options, natives), natives));
  for (ContainerRequest& request : requests) {
    request.for_whole_pod = true;
  }
  return requests;
}

cpu::View CpuViewOf(const NodeModel& model, const NodeHoldings& held) {
  return {model.machine, model.cpu,
          held.cpu,      model.static_cpu.has_value() ? &*model.static_cpu : nullptr,
          model.offline, model.layout.has_value() ? &*model.layout : nullptr};
}

/// One pod being placed.
class Walk {
 public:
  Walk(const NodeModel& model, const PodDemands& pod, NodeHoldings& holdings)
      : model_(model), holdings_(holdings) {
    for (const ContainerDemand& demand : pod) {
      if (AsksForDriver(demand)) {
        driven_.insert(demand.key());
      }
    }
  }

  StatusOr<HintByResource> Align(const Requests& requests) const {
    HintByResource merged;
    HintsByResource hints;
    if (model_.options.merge.policy == TopologyPolicy::kNone) {
      for (const ContainerRequest& request : requests) {
        merged[request.resource] = {.nodes = model_.machine.node_mask(), .preferred = true};
      }
      return merged;
    }
    for (const ContainerRequest& request : requests) {
      StatusOr<HintList> answer = Ask(request);
      if (!answer.ok()) {
        return Refusal(answer.status(), request);
      }
      hints[request.resource] = *std::move(answer);
    }
    MergeResult result = MergeHints(model_.machine, hints, model_.options.merge);
    if (!result.admit) {
      return Errorf(StatusCode::kResourceExhausted,
                    "no NUMA placement fits under topology-policy {}",
                    ToString(model_.options.merge.policy));
    }
    return std::move(result.hints);
  }

  /// Gives the container of `demand` what it asks for, within `hints`. Errors: kPermissionDenied
  /// where the pod's namespace may not have what the plugins give.
  Status Allocate(const ContainerDemand& demand, const Requests& requests,
                  const HintByResource& hints, PodPlacement& placement) {
    AllocationByResource given;
    for (ContainerRequest request : requests) {
      const auto merged = hints.find(request.resource);
      const TopologyHint hint = merged == hints.end() ? TopologyHint() : merged->second;
      request.hint = hint;
      StatusOr<ResourceAllocation> allocation = Give(request, hint);
      if (!allocation.ok()) {
        return Refusal(allocation.status(), request);
      }
      given.emplace(request.resource, *allocation);
      placement.grants[request.resource][request.key] = {request, *std::move(allocation)};
    }
    return CheckGiven(demand, given, model_.options);
  }

 private:
  cpu::View CpuView() const { return CpuViewOf(model_, holdings_); }
  memory::View MemoryView() const { return {model_.machine, model_.memory, holdings_.memory}; }
  nic::View NicView() const { return {model_.machine, model_.nic, model_.nics, holdings_.nic}; }

  bool IsDriven(const ContainerRequest& request) const {
    return request.resource == cpu::kResource && request.quantity() > 0 &&
           driven_.contains(request.key);
  }

  /// What a driver is offered for the container: also the CPUs of init containers before it.
  CpuSet DriverOffer(const ContainerRequest& request) const {
    return cpu::LeftCpus(CpuView()) |
           (cpu::ReusableCpus(holdings_.cpu, request.key, request.type) - model_.offline);
  }

  // As the node does for drivers without hints; which CPUs a driver takes is known there only.
  HintList DriverHints(const ContainerRequest& request) const {
    const CpuSet free = DriverOffer(request);
    NodeAmounts amounts;
    for (const NumaNode& node : model_.machine.nodes()) {
      amounts.total[node.id] = (node.cpus - model_.cpu.reserved).Count();
      amounts.free[node.id] = (node.cpus & free).Count();
    }
    return GenerateHints(model_.machine, std::ceil(request.quantity()), amounts);
  }

  StatusOr<ResourceAllocation> GiveDriven(const ContainerRequest& request,
                                          const TopologyHint& hint) {
    const CpuSet free = DriverOffer(request);
    const TopologyPolicy policy = model_.options.merge.policy;
    const bool is_strict =
        policy == TopologyPolicy::kRestricted || policy == TopologyPolicy::kSingleNumaNode;
    const CpuSet offer =
        is_strict && !hint.nodes.Empty() ? free & model_.machine.CpusOf(hint.nodes) : free;
    QRM_ASSIGN_OR_RETURN(const CpuSet cpus,
                         TakeCpusNear(model_.machine, offer,
                                      static_cast<int>(std::ceil(request.quantity())), hint.nodes));
    if ((cpu::PoolCpus(CpuView(), cpu::kDefaultPool) - cpus).Empty()) {
      return Errorf(StatusCode::kResourceExhausted, "no CPU would be left to share");
    }
    ResourceAllocation allocation = sdk::PinCpus(cpus);
    allocation.exclusive = true;
    cpu::CpuState more =
        cpu::Rebuild(model_.machine, model_.cpu, {}, {{request.key, {request, allocation, {}}}}, {})
            .state;
    holdings_.cpu.exclusive.merge(more.exclusive);
    SettlePools(model_, holdings_);
    return allocation;
  }

  StatusOr<HintList> Ask(const ContainerRequest& request) const {
    if (IsDriven(request)) {
      return DriverHints(request);
    }
    if (request.resource == cpu::kResource) {
      return cpu::CpuHints(CpuView(), request);
    }
    return request.resource == memory::kResource ? memory::MemoryHints(MemoryView(), request)
                                                 : nic::NicHints(NicView(), request);
  }

  // As the plugins themselves keep their decisions.
  StatusOr<ResourceAllocation> Give(const ContainerRequest& request, const TopologyHint& hint) {
    if (IsDriven(request)) {
      return GiveDriven(request, hint);
    }
    if (request.resource == cpu::kResource) {
      QRM_ASSIGN_OR_RETURN(cpu::Decision decision, cpu::PlaceContainer(CpuView(), request, hint));
      ResourceAllocation allocation = std::move(decision.allocation);
      if (decision.holding.has_value() || cpu::IsElastic(model_.cpu, decision.pool)) {
        cpu::Note(model_.cpu, request, std::move(decision), holdings_.cpu);
      }
      return allocation;
    }
    if (request.resource == memory::kResource) {
      QRM_ASSIGN_OR_RETURN(memory::Decision decision,
                           memory::PlaceContainer(MemoryView(), request, hint));
      ResourceAllocation allocation = std::move(decision.allocation);
      memory::Note(request.key, std::move(decision), holdings_.memory);
      return allocation;
    }
    QRM_ASSIGN_OR_RETURN(nic::Decision decision, nic::PlaceContainer(NicView(), request, hint));
    holdings_.nic.Put(request.key, std::move(decision.use));
    return std::move(decision.allocation);
  }

  static Status Refusal(const Status& cause, const ContainerRequest& request) {
    return cause.code() == StatusCode::kInvalidArgument
               ? Errorf(cause.code(), "the node cannot serve what it asks of {}", request.resource)
               : Errorf(cause.code(), "the node has too little {} left where it is needed",
                        request.resource);
  }

  const NodeModel& model_;
  NodeHoldings& holdings_;
  std::set<ContainerKey> driven_;  // containers whose CPUs a compute driver chooses
};

/// What the pod's ended init containers still hold of memory.
memory::SavedInits InitsOf(const SharedText& uid, const memory::Bindings& bindings) {
  memory::SavedInits inits;
  for (auto binding = bindings.lower_bound({.pod_uid = uid});
       binding != bindings.end() && binding->first.pod_uid == uid; ++binding) {
    if (binding->second.type == ContainerType::kInit) {
      MemoryBytes& bytes = inits[binding->first];
      for (const MemoryBlock& block : binding->second.blocks) {
        bytes[block.type] += block.bytes;
      }
    }
  }
  return inits;
}

/// True when there was something.
template <typename ByContainer>
bool EraseOf(const std::string& uid, ByContainer& by_container) {
  const auto first = by_container.lower_bound({.pod_uid = uid});
  auto end = first;
  while (end != by_container.end() && end->first.pod_uid == uid) {
    ++end;
  }
  const bool had = first != end;
  by_container.erase(first, end);
  return had;
}

}  // namespace

NodeHoldings NothingHeld(const NodeModel& model) {
  NodeHoldings nothing;
  SettlePools(model, nothing);
  return nothing;
}

void SettlePools(const NodeModel& model, NodeHoldings& held) {
  const CpuSet owned = cpu::ExclusiveCpus(held.cpu);
  held.cpu.pools = model.pools;
  for (auto& [name, cpus] : held.cpu.pools) {
    cpus -= owned;
  }
  held.cpu.pools = cpu::SizedPools(CpuViewOf(model, held));
}

StatusOr<std::vector<Requests>> RequestsOf(const NodeModel& model, const PodDemands& pod) {
  return RequestsOfAsked(model, AskedOf(model, pod));
}

bool MayHold(const NodeModel& model, const PodDemands& pod) {
  if (std::any_of(pod.begin(), pod.end(), AsksForDriver)) {
    return true;
  }
  const auto may_hold = [&model](const ContainerRequest& request) {
    if (request.resource == cpu::kResource) {
      const auto placement = cpu::Classify(model.cpu, request);
      return !placement.ok() || placement->exclusive.has_value() ||
             cpu::IsElastic(model.cpu, placement->pool);
    }
    if (request.resource == memory::kResource) {
      const auto placement = memory::Classify(model.memory, request);
      return !placement.ok() || placement->rule.has_value() || placement->by_static_policy;
    }
    return true;
  };
  const StatusOr<std::vector<Requests>> containers = RequestsOf(model, pod);
  return containers.ok() &&
         std::any_of(containers->begin(), containers->end(), [&](const Requests& requests) {
           return std::any_of(requests.begin(), requests.end(), may_hold);
         });
}

NodeHoldings HoldingsOf(const NodeModel& model, const PodPlacement& placement) {
  const auto grants_of = [&placement](const std::string& resource) {
    const auto found = placement.grants.find(resource);
    return found == placement.grants.end() ? sdk::Grants() : found->second;
  };
  cpu::CpuState cpu =
      cpu::Rebuild(model.machine, model.cpu, {}, grants_of(cpu::kResource), {}).state;
  std::erase_if(cpu.shared,
                [&](const auto& guest) { return !cpu::IsElastic(model.cpu, guest.second.pool); });
  return {.cpu = {.exclusive = std::move(cpu.exclusive), .shared = std::move(cpu.shared)},
          .memory = memory::Rebuild(model.machine, model.memory, placement.inits,
                                    grants_of(memory::kResource))
                        .bindings,
          .nic = nic::Rebuild(model.nic, grants_of(model.nic.resource))};
}

bool DropPod(const std::string& uid, NodeHoldings& held) {
  const bool had_cpus = EraseOf(uid, held.cpu.exclusive);
  const bool had_part = EraseOf(uid, held.cpu.shared);
  const bool had_memory = EraseOf(uid, held.memory);
  const bool had_nic = held.nic.TakePod(uid);
  return had_cpus || had_part || had_memory || had_nic;
}

StatusOr<PlacedPod> PlacePod(const NodeModel& model, const PodDemands& pod,
                             const NodeHoldings& held) {
  PlacedPod placed{.after = held};
  const PodDemands asked = AskedOf(model, pod);
  Walk walk(model, asked, placed.after);
  QRM_ASSIGN_OR_RETURN(const std::vector<Requests> containers, RequestsOfAsked(model, asked));
  const bool together = model.options.scope == TopologyScope::kPod && containers.size() > 1;
  HintByResource hints;
  if (together) {
    QRM_ASSIGN_OR_RETURN(const Requests whole, Together(model, asked));
    QRM_ASSIGN_OR_RETURN(hints, walk.Align(whole));
  }
  for (std::size_t i = 0; i < containers.size(); ++i) {
    if (!together) {
      QRM_ASSIGN_OR_RETURN(hints, walk.Align(containers[i]));
    }
    QRM_RETURN_IF_ERROR(walk.Allocate(asked[i], containers[i], hints, placed.placement));
  }
  placed.placement.inits = InitsOf(pod.front().pod.uid, placed.after.memory);
  return placed;
}

}  // namespace qrm::placement
