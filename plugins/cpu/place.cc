// Chooses CPUs, those that the rule prefers first.
#include "plugins/cpu/place.h"

#include <algorithm>
#include <vector>

#include "plugins/cpu/pick.h"

namespace qrm::cpu {
namespace {

/// The node with CPUs of `among` that has fewest (or most) of `own`; the lowest number of equal
/// ones.
template <typename Better>
CpuSet NodeCpusBy(const Machine& machine, const CpuSet& own, const CpuSet& among, Better better) {
  const NumaNode* best = nullptr;
  for (const NumaNode& node : machine.nodes()) {
    if (node.cpus.Intersects(among) &&
        (best == nullptr || better((node.cpus & own).Count(), (best->cpus & own).Count()))) {
      best = &node;
    }
  }
  return best == nullptr ? CpuSet() : best->cpus;
}

/// How many CPUs are taken at once for an even spread: those of a core, if cores stay whole.
int StepOf(const Surroundings& around, const CpuSet& cpus) {
  return around.rule.OwnsWholeCores() ? ThreadsPerCore(around.machine, cpus) : 1;
}

CpuSet PickEvenly(const Surroundings& around, const CpuSet& own, const CpuSet& free, int count) {
  CpuSet taken;
  while (taken.Count() < count) {
    const CpuSet left = free - taken;
    const CpuSet node = NodeCpusBy(around.machine, own | taken, left, std::less<>());
    const CpuSet more = PickCpus(around.machine, (own | taken) & node, left & node,
                                 std::min(StepOf(around, left), count - taken.Count()));
    if (more.Empty()) {
      break;
    }
    taken |= more;
  }
  return taken;
}

CpuSet DropEvenly(const Surroundings& around, const CpuSet& own, int count) {
  CpuSet dropped;
  while (dropped.Count() < std::min(count, own.Count())) {
    const CpuSet left = own - dropped;
    const CpuSet node = NodeCpusBy(around.machine, left, left, std::greater<>());
    dropped |= DropCpus(around.machine, left & node,
                        std::min(StepOf(around, left), count - dropped.Count()));
  }
  return dropped;
}

/// All CPUs if the rule names no devices, or they do not exist.
CpuSet NearCpus(const Surroundings& around) {
  return around.rule.near_nodes.Empty() ? around.machine.cpu_set()
                                        : around.machine.CpusOf(around.rule.near_nodes);
}

/// The sets that the rule prefers: each fulfils one wish more than the next; the last is all CPUs.
std::vector<CpuSet> Preferences(const Surroundings& around, const CpuSet& available) {
  const CpuSet kind = CpusOfKind(around.machine, around.rule.core);
  const CpuSet near = kind & NearCpus(around);
  std::vector<CpuSet> sets = {near - around.avoided, near, kind, around.machine.cpu_set()};
  if (around.rule.align_l3) {
    CpuSet whole;
    for (const CpuGroup& l3 : around.machine.l3s()) {
      whole |= (l3.cpus - around.offline).IsSubsetOf(available) ? l3.cpus : CpuSet();
    }
    sets.insert(sets.begin(), sets.front() & whole);
  }
  return sets;
}

}  // namespace

CpuSet CpusOfKind(const Machine& machine, PlaceRule::Core kind) {
  if (kind == PlaceRule::Core::kAny || machine.highest_core_kind() == 0) {
    return machine.cpu_set();
  }
  const CpuSet fast = machine.PerformanceCpus();
  return kind == PlaceRule::Core::kPerformance ? fast : machine.cpu_set() - fast;
}

int ThreadsPerCore(const Machine& machine, const CpuSet& cpus) {
  int threads = 1;
  for (const CpuGroup& core : machine.cores()) {
    threads = std::max(threads, (core.cpus & cpus).Count());
  }
  return threads;
}

CpuSet PickPlaced(const Surroundings& around, const CpuSet& own, const CpuSet& free, int count) {
  CpuSet usable = free;
  if (around.rule.OwnsWholeCores()) {
    usable &= around.machine.WholeCores(own | free, around.offline);
  }
  CpuSet taken;
  for (const CpuSet& preferred : Preferences(around, own | usable)) {
    const CpuSet from = (usable & preferred) - taken;
    const int missing = count - taken.Count();
    if (missing <= 0) {
      break;
    }
    taken |= around.rule.numa == PlaceRule::Numa::kEven
                 ? PickEvenly(around, own | taken, from, missing)
                 : PickCpus(around.machine, own | taken, from, missing);
  }
  // Cores with offline threads can leave a remainder that is smaller than a core.
  return around.rule.OwnsWholeCores()
             ? taken & around.machine.WholeCores(own | taken, around.offline)
             : taken;
}

CpuSet DropPlaced(const Surroundings& around, const CpuSet& own, int count) {
  CpuSet dropped;
  for (const CpuSet& preferred : {CpusOfKind(around.machine, around.rule.core), NearCpus(around),
                                  around.machine.cpu_set() - around.avoided, CpuSet()}) {
    const CpuSet from = own - preferred - dropped;
    const int surplus = count - dropped.Count();
    if (surplus <= 0) {
      break;
    }
    dropped |= around.rule.numa == PlaceRule::Numa::kEven ? DropEvenly(around, from, surplus)
                                                          : DropCpus(around.machine, from, surplus);
  }
  return dropped;
}

CpuSet ThreadsInUse(const Machine& machine, const PlaceRule& rule, const CpuSet& cpus) {
  return rule.threads == PlaceRule::Threads::kOnePerCore ? machine.FirstThreads(cpus) : cpus;
}

}  // namespace qrm::cpu
