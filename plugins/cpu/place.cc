// Chooses CPUs, those that the rule prefers first.
#include "plugins/cpu/place.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <vector>

namespace qrm::cpu {
namespace {

/// A part of the machine, with the CPUs in it that count: the machine, a NUMA node, an L3 cache
/// within it, or a core within that.
struct Part {
  int id = 0;
  int own = 0;
  int free = 0;
  int package = 0;  ///< of a node
  int near = 0;     ///< of a node: CPUs that are owned in its package
  CpuSet cpus;      ///< of a core: its free CPUs when picking, its owned CPUs when dropping
  std::vector<Part> parts;

  bool IsCore() const { return parts.empty(); }
};

Part& PartOf(std::vector<Part>& parts, int id) {
  const auto found =
      std::find_if(parts.begin(), parts.end(), [&](const Part& part) { return part.id == id; });
  return found == parts.end() ? parts.emplace_back(Part{.id = id}) : *found;
}

/// The tree of the CPUs of `own` and `free`; cores have the CPUs of `listed`.
Part TreeOf(const Machine& machine, const CpuSet& own, const CpuSet& free, const CpuSet& listed) {
  Part root;
  for (const int id : own | free) {
    const Cpu* const cpu = machine.FindCpu(id);
    if (cpu == nullptr) {
      continue;
    }
    Part& node = PartOf(root.parts, cpu->node);
    Part& l3 = PartOf(node.parts, cpu->l3);
    Part& core = PartOf(l3.parts, cpu->core);
    node.package = cpu->package;
    for (Part* part : {&root, &node, &l3, &core}) {
      part->own += own.Has(id) ? 1 : 0;
      part->free += free.Has(id) ? 1 : 0;
    }
    if (listed.Has(id)) {
      core.cpus.Add(id);
    }
  }
  for (Part& node : root.parts) {
    for (const Part& other : root.parts) {
      node.near += other.package == node.package ? other.own : 0;
    }
  }
  return root;
}

/// The lower, the better to take `missing` CPUs from.
auto CostOfPicking(const Part& part, int missing) {
  // A core should be taken whole; a larger part should have all missing CPUs.
  const bool fits = part.IsCore() ? part.free <= missing : part.free >= missing;
  const bool tight = part.IsCore() ? !fits : fits;
  // A node of the same package is better than another node only if it leads to no more nodes.
  return std::tuple(part.free == 0, -part.own, !fits, fits ? -part.near : 0,
                    tight ? part.free : -part.free, -part.near, part.id);
}

/// The lower, the better to give up `surplus` CPUs from.
auto CostOfDropping(const Part& part, int surplus) {
  const bool whole = !part.IsCore() || part.own <= surplus;
  return std::tuple(part.own == 0, !whole, part.IsCore() && whole ? -part.own : part.own, -part.id);
}

/// From the root to a core, through the part of least `cost` at each level.
template <typename Cost>
std::vector<Part*> PathToCore(Part& root, int missing, Cost cost) {
  std::vector<Part*> path = {&root};
  while (!path.back()->IsCore()) {
    std::vector<Part>& parts = path.back()->parts;
    path.push_back(&*std::min_element(
        parts.begin(), parts.end(),
        [&](const Part& a, const Part& b) { return cost(a, missing) < cost(b, missing); }));
  }
  return path;
}

/// What a CPU counts as before and after it is taken.
struct Counts {
  int Part::* from;
  int Part::* to;
};

/// `count` CPUs of the tree: each time the CPU that `end` names, of the core of least `cost`. A
/// taken CPU counts as `counts` says.
template <typename Cost, typename End>
CpuSet Take(Part& root, int count, Counts counts, Cost cost, End end) {
  CpuSet taken;
  int missing = std::min(count, root.*counts.from);
  while (missing > 0) {
    const std::vector<Part*> path = PathToCore(root, missing, cost);
    CpuSet& core = path.back()->cpus;
    while (missing > 0 && !core.Empty()) {
      const int cpu = end(core);
      core.Remove(cpu);
      taken.Add(cpu);
      --missing;
      for (Part* part : path) {
        --(part->*counts.from);
        ++(part->*counts.to);
      }
      for (Part& node : root.parts) {
        node.near += node.package == path[1]->package ? 1 : 0;
      }
    }
  }
  return taken;
}

}  // namespace

CpuSet PickCpus(const Machine& machine, const CpuSet& own, const CpuSet& free, int count) {
  Part root = TreeOf(machine, own - free, free, free);
  return Take(root, count, {&Part::free, &Part::own}, CostOfPicking,
              [](const CpuSet& core) { return core.First(); });
}

CpuSet DropCpus(const Machine& machine, const CpuSet& own, int count) {
  Part root = TreeOf(machine, own, {}, own);
  return Take(root, count, {&Part::own, &Part::free}, CostOfDropping,
              [](const CpuSet& core) { return core.Last(); });
}

namespace {

/// As PickCpus, but in each L3 cache that it chooses, cores without CPUs of `own` come first, with
/// one thread each.
CpuSet PickSpread(const Machine& machine, const CpuSet& own, const CpuSet& free, int count) {
  const CpuSet chosen = PickCpus(machine, own, free, count);
  CpuSet picked;
  for (const NumaNode& node : machine.nodes()) {
    for (const CpuGroup& l3 : machine.l3s()) {
      const CpuSet here = l3.cpus & node.cpus;
      const int wanted = (chosen & here).Count();
      const CpuSet unused = (free & here) - machine.CoresOf(own);
      CpuSet more = PickCpus(machine, {}, machine.FirstThreads(unused), wanted);
      more |= PickCpus(machine, own, (free & here) - more, wanted - more.Count());
      picked |= more;
    }
  }
  // CPUs may have no L3 cache.
  return picked | PickCpus(machine, own | picked, free - picked, chosen.Count() - picked.Count());
}

/// As DropCpus, but CPUs whose core the owner has another thread of come first.
CpuSet DropSpread(const Machine& machine, const CpuSet& own, int count) {
  const CpuSet second = own - machine.FirstThreads(own);
  const CpuSet dropped = DropCpus(machine, second, count);
  return dropped | DropCpus(machine, own - second, count - dropped.Count());
}

CpuSet PickByThreads(const Surroundings& around, const CpuSet& own, const CpuSet& free, int count) {
  return around.rule.threads == PlaceRule::Threads::kSpread
             ? PickSpread(around.machine, own, free, count)
             : PickCpus(around.machine, own, free, count);
}

CpuSet DropByThreads(const Surroundings& around, const CpuSet& own, int count) {
  return around.rule.threads == PlaceRule::Threads::kSpread ? DropSpread(around.machine, own, count)
                                                            : DropCpus(around.machine, own, count);
}

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
    const CpuSet more = PickByThreads(around, (own | taken) & node, left & node,
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
    dropped |=
        DropByThreads(around, left & node, std::min(StepOf(around, left), count - dropped.Count()));
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
                 : PickByThreads(around, own | taken, from, missing);
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
                                                          : DropByThreads(around, from, surplus);
  }
  return dropped;
}

CpuSet ThreadsInUse(const Machine& machine, const PlaceRule& rule, const CpuSet& cpus) {
  return rule.threads == PlaceRule::Threads::kOnePerCore ? machine.FirstThreads(cpus) : cpus;
}

}  // namespace qrm::cpu
