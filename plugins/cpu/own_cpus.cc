// Chooses nodes by the hints that a room gives, then CPUs by kubelet's rules.
#include "plugins/cpu/own_cpus.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include "plugins/cpu/grow.h"
#include "plugins/rules/sharing.h"
#include "topology/cpu_layout.h"
#include "topology/hint_generation.h"

namespace qrm::cpu {
namespace {

using rules::NumaSpan;

/// Whether each of `nodes` can give its even share of the CPUs.
bool CanSplitEvenly(const Room& room, const NumaMask& nodes) {
  const int share = room.count / nodes.Count();
  return std::all_of(nodes.begin(), nodes.end(),
                     [&](int node) { return room.amounts.free.at(node) >= share; });
}

std::size_t PackagesOf(const Machine& machine, const NumaMask& nodes) {
  std::set<int> packages;
  for (const int node : nodes) {
    packages.insert(machine.FindNode(node)->package);
  }
  return packages.size();
}

/// Removes masks of more packages than another mask of as many nodes.
void StayOnFewestPackages(const Machine& machine, std::vector<TopologyHint>& fitting) {
  std::map<int, std::size_t> fewest;
  for (const TopologyHint& hint : fitting) {
    const std::size_t packages = PackagesOf(machine, hint.nodes);
    const auto known = fewest.emplace(hint.nodes.Count(), packages).first;
    known->second = std::min(known->second, packages);
  }
  std::erase_if(fitting, [&](const TopologyHint& hint) {
    return PackagesOf(machine, hint.nodes) > fewest.at(hint.nodes.Count());
  });
}

/// The nodes to take CPUs from: `hint` when it fits, else the best mask within it.
std::optional<NumaMask> ChooseNodes(const Machine& machine,
                                    const std::vector<TopologyHint>& fitting,
                                    const NumaMask& hint) {
  const bool anywhere = hint.Empty() || hint == machine.node_mask();
  for (const TopologyHint& candidate : fitting) {
    if (anywhere || candidate.nodes == hint) {
      return candidate.nodes;
    }
  }
  for (const TopologyHint& candidate : fitting) {
    if (candidate.nodes.IsSubsetOf(hint)) {
      return candidate.nodes;
    }
  }
  return std::nullopt;
}

/// The best of `fitting` that contains `hint`, else the best one.
const NumaMask& Widened(const std::vector<TopologyHint>& fitting, const NumaMask& hint) {
  const auto wider = std::find_if(fitting.begin(), fitting.end(), [&](const TopologyHint& mask) {
    return hint.IsSubsetOf(mask.nodes);
  });
  return wider == fitting.end() ? fitting.front().nodes : wider->nodes;
}

StatusOr<CpuSet> TakeNear(const View& view, const CpuSet& available, int count,
                          const NumaMask& affinity, const CpuAssignmentOptions& options) {
  return view.layout != nullptr ? TakeCpusNear(*view.layout, available, count, affinity, options)
                                : TakeCpusNear(view.machine, available, count, affinity, options);
}

}  // namespace

std::vector<TopologyHint> FittingMasks(const View& view, const Room& room,
                                       const ExclusiveRule& rule) {
  const HintGenerationOptions options = {.max_nodes = rule.numa == NumaSpan::kOne ? 1 : 0};
  const HintList generated = GenerateHints(view.machine, room.count, room.amounts, options);
  std::vector<TopologyHint> fitting;
  for (const TopologyHint& hint : generated.hints()) {
    const bool even = rule.numa != NumaSpan::kEven || CanSplitEvenly(room, hint.nodes);
    if (even && !hint.nodes.Intersects(room.barred)) {
      fitting.push_back(hint);
    }
  }
  if (rule.numa == NumaSpan::kFewest) {
    StayOnFewestPackages(view.machine, fitting);
  }
  return fitting;
}

Status CheckFilled(const View& view, const ContainerRequest& request, const rules::Tenant& tenant,
                   const NumaMask& nodes) {
  const int total = (view.machine.CpusOf(nodes) - view.config.reserved).Count();
  return rules::CheckFill(request, tenant, nodes,
                          {.asked = request.quantity(),
                           .total = static_cast<double>(total),
                           .least_percent = view.config.exclusive_node_percent,
                           .what = "CPUs"});
}

std::optional<StatusOr<CpuSet>> PickOwnCpus(const View& view, const Room& room,
                                            const ExclusiveRule& rule, const NumaMask& hint) {
  const CpuAssignmentOptions options = {
      .full_physical_cpus_only = rule.whole_cores,
      .distribute_across_numa = rule.numa == NumaSpan::kEven,
      .prefer_align_by_l3 = rule.align_l3,
  };
  if (rule.numa == NumaSpan::kAny) {
    return TakeNear(view, room.free, room.count, hint, options);
  }
  const std::vector<TopologyHint> fitting = FittingMasks(view, room, rule);
  std::optional<NumaMask> nodes = ChooseNodes(view.machine, fitting, hint);
  // The manager may admit with a hint that is too narrow: then take its CPUs, and the nearest
  // others.
  const bool beyond_hint = rule.numa == NumaSpan::kFewest && !nodes && !fitting.empty();
  if (beyond_hint) {
    nodes = Widened(fitting, hint);
  }
  if (!nodes) {
    return std::nullopt;
  }
  const CpuSet free = room.free & view.machine.CpusOf(*nodes);
  return rule.whole_nodes
             ? free
             : TakeNear(view, free, room.count, beyond_hint ? hint : NumaMask(), options);
}

std::optional<CpuSet> ReusedCpus(const View& view, const Room& room, const ExclusiveRule& rule,
                                 const NumaMask& hint) {
  const CpuSet usable = hint.Empty() ? room.reusable : room.reusable & view.machine.CpusOf(hint);
  if (usable.Count() >= room.count) {
    Room enough = room;
    enough.free = usable;
    for (auto& [node, free] : enough.amounts.free) {
      free = (view.machine.FindNode(node)->cpus & usable).Count();
    }
    const auto picked = PickOwnCpus(view, enough, rule, hint);
    return picked.has_value() && picked->ok() ? std::optional(**picked) : std::nullopt;
  }
  const std::optional<CpuSet> grown = GrownInPlace(view.machine, usable, room, rule);
  if (!grown.has_value()) {
    return std::nullopt;
  }
  const NumaMask nodes = view.machine.NodesOf(*grown);
  const std::vector<TopologyHint> fitting = FittingMasks(view, room, rule);
  const bool is_near = std::any_of(fitting.begin(), fitting.end(), [&](const TopologyHint& mask) {
    return mask.nodes == nodes && mask.preferred;
  });
  return is_near && (hint.Empty() || nodes.IsSubsetOf(hint)) ? grown : std::nullopt;
}

}  // namespace qrm::cpu
