// The steps of an admission without the daemon: nothing is committed, no process is called.
#include "scheduler/topology/numa_plan.h"

#include <algorithm>
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
#include "topology/pod_request.h"

namespace qrm::scheduler {
namespace {

constexpr char kQosLevel[] = "katalyst.kubewharf.io/qos_level";
constexpr char kHugepages[] = "hugepages-";

using Requests = std::vector<ContainerRequest>;
using HintByResource = std::map<std::string, TopologyHint>;

std::string TextOf(const StringMap& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? std::string() : found->second;
}

std::string FirstOf(const std::string& first, const std::string& second) {
  return first.empty() ? second : first;
}

/// Containers in the order in which they start, each with its type and place in its list.
std::vector<ContainerRequest> Frames(const PodRoleKeys& keys, const Pod& pod) {
  const std::string main = TextOf(pod.annotations, keys.main_container_annotation);
  const bool named = std::any_of(
      pod.containers.begin(), pod.containers.end(),
      [&](const PodContainer& c) { return c.kind == PodContainer::Kind::kApp && c.name == main; });
  std::vector<ContainerRequest> frames;
  uint64_t apps = 0;
  uint64_t inits = 0;
  for (const PodContainer& container : pod.containers) {
    ContainerRequest frame{
        .key = {pod.uid, container.name},
        .pod_namespace = pod.pod_namespace,
        .pod_name = pod.name,
        .pod_role = FirstOf(TextOf(pod.labels, keys.role_label),
                            TextOf(pod.annotations, keys.role_annotation)),
        .pod_type = FirstOf(TextOf(pod.annotations, keys.type_annotation),
                            TextOf(pod.annotations, keys.type_annotation_fallback)),
        .labels = pod.labels,
        .annotations = pod.annotations,
        .native_qos_class = pod.qos_class,
        .runtime_class = pod.runtime_class};
    if (container.kind == PodContainer::Kind::kApp) {
      const bool is_main = named ? container.name == main : apps == 0;
      frame.type = is_main ? ContainerType::kMain : ContainerType::kSidecar;
      frame.index = apps++;
    } else {
      frame.type = container.kind == PodContainer::Kind::kInit ? ContainerType::kInit
                                                               : ContainerType::kSidecar;
      frame.index = inits++;
    }
    frames.push_back(std::move(frame));
  }
  return frames;
}

/// What the container asks for, and nothing of what every container uses.
Amounts AllRequests(const Amounts& asked) {
  Amounts all = asked;
  all.emplace(cpu::kResource, 0);
  all.emplace(memory::kResource, 0);
  return all;
}

/// Whether a plugin that runs inside the node's qrmd places `resource`.
bool IsPlaced(const NodeModel& model, const std::string& resource) {
  const auto runs = [&model](const char* plugin) {
    return std::find(model.plugins.begin(), model.plugins.end(), plugin) != model.plugins.end();
  };
  return (resource == cpu::kResource && runs("cpu")) ||
         (resource == memory::kResource && runs("memory")) ||
         (resource == model.nic.resource && runs("nic"));
}

/// A request to each plugin, by the plugins' names.
Requests Split(const NodeModel& model, const ContainerRequest& frame, const Amounts& amounts) {
  Requests requests;
  for (const auto& [name, amount] : amounts) {
    if (!IsPlaced(model, name)) {
      continue;
    }
    ContainerRequest request = frame;
    request.resource = name;
    request.requests = {{name, amount}};
    if (name == memory::kResource) {
      std::copy_if(amounts.begin(), amounts.end(),
                   std::inserter(request.requests.Edit(), request.requests.Edit().end()),
                   [](const auto& other) { return other.first.rfind(kHugepages, 0) == 0; });
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

bool IsSkipped(const NodeModel& model, const Pod& pod) {
  const auto& skipped = model.skipped_namespaces;
  return std::find(skipped.begin(), skipped.end(), pod.pod_namespace) != skipped.end() &&
         TextOf(pod.annotations, kQosLevel) != "system_cores";
}

/// Scope pod: what the containers need together, asked as the main one of them.
Requests Together(const NodeModel& model, const Pod& pod) {
  std::vector<ContainerAmounts> amounts;
  std::vector<ContainerRequest> frames = Frames(model.pod_keys, pod);
  ContainerRequest main = frames.front();
  for (std::size_t i = 0; i < frames.size(); ++i) {
    amounts.push_back({.type = frames[i].type, .amounts = AllRequests(pod.containers[i].requests)});
    main = frames[i].type == ContainerType::kMain ? frames[i] : main;
  }
  main.for_whole_pod = true;
  return Split(model, main, PodRequest(amounts));
}

cpu::View CpuViewOf(const NodeModel& model, const NodeHoldings& held) {
  return {model.machine, model.cpu,
          held.cpu,      model.static_cpu.has_value() ? &*model.static_cpu : nullptr,
          model.offline, model.layout.has_value() ? &*model.layout : nullptr};
}

/// One pod being placed.
class Walk {
 public:
  Walk(const NodeModel& model, NodeHoldings& holdings) : model_(model), holdings_(holdings) {}

  StatusOr<HintByResource> Align(const Requests& requests) const {
    HintByResource merged;
    HintsByResource hints;
    if (model_.merge.policy == TopologyPolicy::kNone) {
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
    MergeResult result = MergeHints(model_.machine, hints, model_.merge);
    if (!result.admit) {
      return Errorf(StatusCode::kResourceExhausted,
                    "no NUMA placement fits under topology-policy {}",
                    ToString(model_.merge.policy));
    }
    return std::move(result.hints);
  }

  Status Take(Requests requests, const HintByResource& hints, PodPlacement& placement) {
    for (ContainerRequest& request : requests) {
      const auto merged = hints.find(request.resource);
      const TopologyHint hint = merged == hints.end() ? TopologyHint() : merged->second;
      request.hint = hint;
      StatusOr<ResourceAllocation> given = Allocate(request, hint);
      if (!given.ok()) {
        return Refusal(given.status(), request);
      }
      placement.grants[request.resource][request.key] = {request, *std::move(given)};
    }
    return OkStatus();
  }

 private:
  cpu::View CpuView() const { return CpuViewOf(model_, holdings_); }
  memory::View MemoryView() const { return {model_.machine, model_.memory, holdings_.memory}; }
  nic::View NicView() const { return {model_.machine, model_.nic, model_.nics, holdings_.nic}; }

  StatusOr<HintList> Ask(const ContainerRequest& request) const {
    if (request.resource == cpu::kResource) {
      return cpu::CpuHints(CpuView(), request);
    }
    return request.resource == memory::kResource ? memory::MemoryHints(MemoryView(), request)
                                                 : nic::NicHints(NicView(), request);
  }

  // As the plugins themselves keep their decisions.
  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request, const TopologyHint& hint) {
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
};

/// What the pod's ended init containers still hold of memory.
memory::SavedInits InitsOf(const Pod& pod, const memory::Bindings& bindings) {
  memory::SavedInits inits;
  for (auto binding = bindings.lower_bound({.pod_uid = pod.uid});
       binding != bindings.end() && binding->first.pod_uid == pod.uid; ++binding) {
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

std::vector<std::vector<ContainerRequest>> RequestsOf(const NodeModel& model, const Pod& pod) {
  std::vector<Requests> all;
  if (!IsSkipped(model, pod)) {
    std::vector<ContainerRequest> frames = Frames(model.pod_keys, pod);
    for (std::size_t i = 0; i < frames.size(); ++i) {
      all.push_back(Split(model, frames[i], AllRequests(pod.containers[i].requests)));
    }
  }
  return all;
}

bool MayHold(const NodeModel& model, const Pod& pod) {
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
  const std::vector<Requests> containers = RequestsOf(model, pod);
  return std::any_of(containers.begin(), containers.end(), [&](const Requests& requests) {
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

StatusOr<PlacedPod> PlacePod(const NodeModel& model, const Pod& pod, const NodeHoldings& held) {
  PlacedPod placed{.after = held};
  Walk walk(model, placed.after);
  const std::vector<Requests> containers = RequestsOf(model, pod);
  const bool together = model.scope == TopologyScope::kPod && containers.size() > 1;
  HintByResource hints;
  if (together) {
    QRM_ASSIGN_OR_RETURN(hints, walk.Align(Together(model, pod)));
  }
  for (const Requests& requests : containers) {
    if (!together) {
      QRM_ASSIGN_OR_RETURN(hints, walk.Align(requests));
    }
    QRM_RETURN_IF_ERROR(walk.Take(requests, hints, placed.placement));
  }
  placed.placement.inits = InitsOf(pod, placed.after.memory);
  return placed;
}

}  // namespace qrm::scheduler
