// Random machines, and random pools on them.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "test/support/rounds.h"
#include "topology/machine.h"

namespace qrm::cpu {

/// Draws everything of one history from its seed.
class Dice {
 public:
  explicit Dice(unsigned seed) : random_(seed) {}
  int Below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  template <typename Item>
  const Item& OneOf(const std::vector<Item>& items) {
    return items[static_cast<std::size_t>(Below(static_cast<int>(items.size())))];
  }
  bool OneIn(int sides) { return Below(sides) == 0; }

 private:
  std::mt19937 random_;
};

/// 1 to 8 NUMA nodes of 1 to 4 cores with 1 to 4 threads, in L3 caches of one or two cores.
inline MachineParts DrawMachine(Dice& dice) {
  MachineParts parts;
  const int nodes = 1 + dice.Below(8);
  const int threads = 1 + dice.Below(4);
  const int cores = (nodes == 1 ? 3 : 1) + dice.Below(4);
  const int per_l3 = threads * (1 + dice.Below(2));
  for (int node = 0; node < nodes; ++node) {
    parts.nodes.push_back({.id = node, .package = node / 2});
    for (int i = 0; i < cores * threads; ++i) {
      const int first = node * cores * threads;
      parts.cpus.push_back({.id = first + i,
                            .core = first + i - i % threads,
                            .l3 = first + i - i % per_l3,
                            .node = node,
                            .package = node / 2});
    }
  }
  return parts;
}

/// At most a fifth of the CPUs, and never the first of a core.
inline CpuSet DrawOffline(Dice& dice, const Machine& machine) {
  CpuSet offline;
  for (const Cpu& cpu : machine.cpus()) {
    if (cpu.id != cpu.core && dice.OneIn(8) && 5 * offline.Count() < machine.cpu_set().Count()) {
      offline.Add(cpu.id);
    }
  }
  return offline;
}

/// What a pool borrows, and that it lends to `borrower`, or nothing of it.
inline std::string DrawSharing(Dice& dice, const char* borrower, bool idle_cpus) {
  constexpr const char* kSpans[] = {"none", "numa", "package", "all"};
  std::string text;
  if (idle_cpus) {
    text += fmt::format(", borrow: {{idle: {}}}", kSpans[dice.Below(4)]);
  }
  if (dice.OneIn(2)) {
    text += fmt::format(", lend: {{to: [{}], keep: {}}}", borrower, dice.Below(4));
  }
  return text;
}

/// ", class: fast", or another, or nothing.
inline std::string DrawClass(Dice& dice, bool classes) {
  constexpr const char* kClasses[] = {"", ", class: fast", ", class: slow"};
  return classes ? kClasses[dice.Below(3)] : "";
}

/// Pools of random bounds, and a default pool that has a size or takes the rest. With `classes`
/// some owners have a class: fast (a least frequency) or slow (a most frequency).
inline std::string DrawConfig(Dice& dice, int cpus, bool classes = false) {
  std::string text = dice.OneIn(2) ? "reserved-cpus: 0\n" : "";
  const bool sized_default = dice.OneIn(2);
  if (classes) {
    text +=
        "classes: {fast: {freq: {min: base, max: turbo}}, slow: {freq: {max: base}}}\n"
        "reserved-class: slow\n";
    text += sized_default ? "idle-class: slow\n" : "";
  }
  text += fmt::format("roles: {{own: {{numa: any, share-numa-with: [\"*\"]{}}}}}\npools:\n",
                      DrawClass(dice, classes));
  for (const auto& [pool, next] : {std::pair("a", "b"), std::pair("b", "c"), std::pair("c", "a")}) {
    const int min = dice.Below(cpus >= 12 ? 3 : 1);
    text += fmt::format(
        "  {}: {{size: {{min: {}, max: {}, ratio: {}%, step: {}}}, priority: {}, weight: {}, "
        "roles: [{}]{}{}}}\n",
        pool, min, min + 1 + dice.Below(cpus), 50 + dice.Below(150), dice.Below(3), dice.Below(2),
        1 + dice.Below(3), pool, DrawSharing(dice, next, sized_default), DrawClass(dice, classes));
  }
  return sized_default ? text + "  default: {size: {min: 1}}\n" : text;
}

/// How many histories a model plays; QRM_POOL_HISTORIES sets another number.
inline int Histories() {
  return test::RoundsBy("QRM_POOL_HISTORIES", test::Rounds(60));
}

}  // namespace qrm::cpu
