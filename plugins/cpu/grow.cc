// Picks what is missing beside what is held.
#include "plugins/cpu/grow.h"

#include "plugins/cpu/pick.h"

namespace qrm::cpu {
namespace {

using placement::NumaSpan;

/// Each of the nodes of `held` has the same number then, but for a rest.
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

std::optional<CpuSet> ResizedInPlace(const Machine& machine, const CpuSet& held, const Room& room,
                                     const ExclusiveRule& rule) {
  if (held.Empty() || !held.IsSubsetOf(room.all)) {
    return std::nullopt;
  }
  const int missing = room.count - held.Count();
  if (missing <= 0) {
    return held - DropCpus(machine, held, -missing);
  }
  const bool stays = rule.numa == NumaSpan::kOne;
  const CpuSet free =
      (stays ? room.free & machine.CpusOf(machine.NodesOf(held)) : room.free) - held;
  const std::optional<CpuSet> grown = rule.numa == NumaSpan::kEven
                                          ? GrownEvenly(machine, held, free, room.count)
                                          : held | PickCpus(machine, held, free, missing);
  const bool fits = grown.has_value() && grown->Count() == room.count;
  return fits ? grown : std::nullopt;
}

}  // namespace qrm::cpu
