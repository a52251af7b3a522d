// Descends from the machine through NUMA nodes and L3 caches to one core at a time.
#include "plugins/cpu/pick.h"

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

}  // namespace qrm::cpu
