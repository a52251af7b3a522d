// Hints of containers with exclusive CPUs, against a search through all sets of CPUs of small
// random machines: a hint can be allocated, and without hints no set of CPUs fits.
// QRM_HINT_QUESTIONS=1000000 asks a million times.
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/drawn_node.h"
#include "test/plugins/cpu/made_plugin.h"
#include "test/plugins/plugin_driver.h"
#include "test/support/rounds.h"

namespace qrm::cpu::hints_oracle_test {
namespace {

using test::Drive;
using test::Request;

/// CPUs as bits; the machines have at most 16.
using Bits = uint32_t;

Bits BitsOf(const CpuSet& cpus) {
  Bits bits = 0;
  for (const int cpu : cpus) {
    bits |= Bits{1} << cpu;
  }
  return bits;
}

/// The parts of a question, drawn from its seed.
struct Scene {
  explicit Scene(Dice& dice) : parts(DrawMachine(dice)) {
    while (parts.cpus.size() > 16) {
      parts = DrawMachine(dice);
    }
    machine = Machine(parts);
    one_node = dice.OneIn(2);
    whole_cores = dice.OneIn(2);
    isolated_wish =
        std::array{"never", "prefer", "require"}[static_cast<std::size_t>(dice.Below(3))];
    reserved = dice.OneIn(2) ? CpuSet{0} : CpuSet();
    for (const Cpu& cpu : parts.cpus) {
      if (dice.OneIn(5) && !reserved.Has(cpu.id)) {
        isolated.Add(cpu.id);
      }
    }
    if ((reserved | isolated) == machine.cpu_set()) {
      isolated = {};  // the default pool must have some
    }
  }

  std::string Config() const {
    return fmt::format(
        "reserved-cpus: \"{}\"\nisolated-cpus: \"{}\"\nroles: {{own: {{numa: {}, whole-cores: {}, "
        "isolated: {}, share-numa-with: [\"*\"]}}}}\n",
        ToString(reserved), isolated.Empty() ? "none" : ToString(isolated),
        one_node ? "one" : "fewest", whole_cores, isolated_wish);
  }

  /// Whether a container may have exactly `cpus`, by the documented meaning of the keys.
  bool IsGood(Bits cpus, Bits taken) const {
    const Bits others = BitsOf(machine.cpu_set()) & ~taken & ~BitsOf(reserved | isolated);
    const Bits alone = BitsOf(isolated) & ~taken;
    const Bits from =
        (isolated_wish == "never" ? 0 : alone) | (isolated_wish == "require" ? 0 : others);
    if ((cpus & ~from) != 0) {
      return false;
    }
    if ((cpus & others) != 0 && (others & ~cpus) == 0) {
      return false;  // the default pool keeps a CPU
    }
    for (const CpuGroup& core : machine.cores()) {
      const Bits all = BitsOf(core.cpus);
      if (whole_cores && (cpus & all) != 0 && (cpus & all) != all) {
        return false;
      }
    }
    return !one_node || NodesOf(cpus).Count() <= 1;
  }

  NumaMask NodesOf(Bits cpus) const {
    NumaMask nodes;
    for (const NumaNode& node : machine.nodes()) {
      if ((BitsOf(node.cpus) & cpus) != 0) {
        nodes.Add(node.id);
      }
    }
    return nodes;
  }

  /// Whether `count` CPUs are available, within `nodes` unless there are none.
  bool CanHave(int count, Bits taken, const NumaMask& nodes) const {
    const Bits all = BitsOf(nodes.Empty() ? machine.cpu_set() : machine.CpusOf(nodes));
    for (Bits cpus = all;; cpus = (cpus - 1) & all) {
      if (std::popcount(cpus) == count && IsGood(cpus, taken)) {
        return true;
      }
      if (cpus == 0) {
        return false;
      }
    }
  }

  MachineParts parts;
  Machine machine;
  bool one_node = false;
  bool whole_cores = false;
  std::string_view isolated_wish;
  CpuSet reserved;
  CpuSet isolated;
};

int Questions() {
  return test::RoundsBy("QRM_HINT_QUESTIONS", 5 * test::Rounds(60));
}

/// Admits one more container again and again, until nothing is available.
void AskUntilFull(unsigned seed) {
  Dice dice(seed);
  const Scene scene(dice);
  Drive drive(Make(scene.Config(), scene.machine));
  for (int pod = 0; pod < 8; ++pod) {
    Bits taken = 0;
    for (const auto& [key, grant] : drive.grants()) {
      taken |= BitsOf(*CpuSet::Parse(grant.allocation->value));
    }
    const int count = 1 + dice.Below(6);
    const ContainerRequest request = Request(fmt::format("pod{}", pod), "own", "cpu", count);
    const StatusOr<HintList> hints = drive.plugin().Hints(request);
    const std::string about = fmt::format("{} CPUs, seed {}, {} taken, by\n{}", count, seed,
                                          std::popcount(taken), scene.Config());
    if (!hints.ok() || hints->IsImpossible()) {
      ASSERT_FALSE(scene.CanHave(count, taken, {})) << hints.status() << "\n" << about;
      continue;
    }
    for (const TopologyHint& hint : hints->hints()) {
      ASSERT_TRUE(scene.CanHave(count, taken, hint.nodes)) << ToString(hint.nodes) << " " << about;
    }
    const TopologyHint& chosen = dice.OneOf(hints->hints());
    const auto given = drive.plugin().Allocate(request, chosen);
    ASSERT_TRUE(given.ok()) << given.status() << about;
    const Bits cpus = BitsOf(*CpuSet::Parse(given->value));
    ASSERT_TRUE(std::popcount(cpus) == count && scene.IsGood(cpus, taken)) << given->value << about;
    drive.Keep(request, given);
  }
}

TEST(HintsOracleTest, OfferWhatCanBeHadAndRejectOnlyWhatCannot) {
  for (int seed = 1; seed <= Questions(); ++seed) {
    ASSERT_NO_FATAL_FAILURE(AskUntilFull(static_cast<unsigned>(seed)));
  }
}

}  // namespace
}  // namespace qrm::cpu::hints_oracle_test
