// Chooses nodes by the hints that a room gives, then CPUs by kubelet's rules.
#include "plugins/cpu/own_cpus.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>

#include "plugins/cpu/place.h"
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

namespace {

/// Each of the nodes of `held` then has the same number of CPUs, except for a remainder.
std::optional<CpuSet> GrownEvenly(const Machine& machine, const CpuSet& held, const CpuSet& free,
                                  int count) {
  const NumaMask nodes = machine.NodesOf(held);
  int rest = count % nodes.Count();
  CpuSet grown;
  for (const int node : nodes) {
    const CpuSet& cpus = machine.FindNode(node)->cpus;
    const int share = count / nodes.Count() + (rest-- > 0 ? 1 : 0);
    const CpuSet here = held & cpus;
    if (here.Count() > share) {
      return std::nullopt;
    }
    grown |= here | PickCpus(machine, here, free & cpus, share - here.Count());
  }
  return grown;
}

}  // namespace

std::optional<CpuSet> GrownInPlace(const Machine& machine, const CpuSet& held, const Room& room,
                                   const ExclusiveRule& rule) {
  if (held.Empty() || !held.IsSubsetOf(room.all)) {
    return std::nullopt;
  }
  const int missing = room.count - held.Count();
  const bool stays = rule.numa == NumaSpan::kOne;
  const CpuSet free =
      (stays ? room.free & machine.CpusOf(machine.NodesOf(held)) : room.free) - held;
  const std::optional<CpuSet> grown = rule.numa == NumaSpan::kEven
                                          ? GrownEvenly(machine, held, free, room.count)
                                          : held | PickCpus(machine, held, free, missing);
  const bool fits = grown.has_value() && grown->Count() == room.count;
  return fits ? grown : std::nullopt;
}

std::optional<CpuSet> GrownByStaticPolicy(const View& view, const Room& room,
                                          const TopologyHint& hint) {
  const CpuSet held = HeldBefore(view);
  if (held.Empty()) {
    return std::nullopt;
  }
  const NumaMask near = hint.nodes.Empty() ? view.machine.NodesOf(held) : hint.nodes;
  const StatusOr<CpuSet> more = view.static_policy->Take({.free = room.free - held, .reusable = {}},
                                                         room.count - held.Count(), near);
  return more.ok() ? std::optional(held | *more) : std::nullopt;
}

int WholeCpusOf(const ContainerRequest& request, const Placement& placement) {
  if (!placement.exclusive) {
    return 0;
  }
  const double all = request.quantity();
  return static_cast<int>(placement.plus.empty() ? std::ceil(all) : std::floor(all));
}

bool Shrinks(const Holding& former, const ContainerRequest& request, const Placement& placement) {
  return !former.cpus.Empty() && (placement.exclusive || !former.Baseline().Empty()) &&
         WholeCpusOf(request, placement) <= former.cpus.Count();
}

CpuSet ShrunkInPlace(const Machine& machine, const Holding& former, int count) {
  return former.cpus - DropCpus(machine, former.grown & former.cpus, former.cpus.Count() - count);
}

CpuSet GrownPart(const View& view, const CpuSet& cpus) {
  if (view.former == nullptr) {
    return {};
  }
  const CpuSet baseline = view.former->Baseline();
  const CpuSet others = cpus - baseline;
  const int lost =
      static_cast<int>(view.former->lost) - (view.former->grown - view.former->cpus).Count();
  const int missing = baseline.Count() + std::max(lost, 0) - (cpus.Count() - others.Count());
  return DropCpus(view.machine, others, std::max(others.Count() - missing, 0));
}

}  // namespace qrm::cpu
