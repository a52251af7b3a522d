// Picks the missing CPUs near the held ones.
#include "plugins/cpu/grow.h"

#include <algorithm>
#include <cmath>

#include "plugins/cpu/pick.h"

namespace qrm::cpu {
namespace {

using placement::NumaSpan;

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
  return former.cpus - DropCpus(machine, former.grown, former.cpus.Count() - count);
}

CpuSet GrownPart(const View& view, const CpuSet& cpus) {
  if (view.former == nullptr) {
    return {};
  }
  const CpuSet baseline = view.former->Baseline();
  const CpuSet others = cpus - baseline;
  const int missing =
      baseline.Count() + static_cast<int>(view.former->lost) - (cpus.Count() - others.Count());
  return DropCpus(view.machine, others, std::max(others.Count() - missing, 0));
}

}  // namespace qrm::cpu
