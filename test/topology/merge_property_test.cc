// MergeHints against the plain product of all hint lists, on random inputs.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "test/support/product_merge.h"
#include "test/support/rounds.h"
#include "topology/merge.h"

namespace qrm::merge_property_test {
namespace {

constexpr int kInputs = test::Rounds(200'000);
constexpr uint64_t kSeed = 20261121;

/// Machines, hints and options; the same ones for the same seed.
class Inputs {
 public:
  explicit Inputs(uint64_t seed) : random_(seed) {}

  int Below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }
  bool Chance(int percent) { return Below(100) < percent; }

  Machine NextMachine(int max_nodes) {
    MachineParts parts;
    const int count = 1 + Below(max_nodes);
    const bool gaps = Chance(20);
    int id = 0;
    for (int i = 0; i < count; ++i) {
      id += gaps ? Below(3) : 0;
      parts.nodes.push_back({.id = id++});
    }
    if (Chance(80)) {
      for (int from = 0; from < count; ++from) {
        std::vector<uint64_t>& row = parts.distances.emplace_back();
        for (int to = 0; to < count; ++to) {
          row.push_back(from == to ? 10 : 11 + static_cast<uint64_t>(Below(4)));
        }
      }
    }
    return Machine(std::move(parts));
  }

  HintsByResource NextHints(const Machine& machine, int max_resources, int max_hints) {
    static const std::vector<std::string> names = {"cpu", "memory", "nic", "gpu"};
    HintsByResource hints;
    const int count = 1 + Below(max_resources);
    for (int i = 0; i < count; ++i) {
      hints[names[static_cast<std::size_t>(i)]] = NextList(machine, max_hints);
    }
    return hints;
  }

  MergeOptions NextOptions() {
    MergeOptions options{.policy = static_cast<TopologyPolicy>(Below(5)),
                         .prefer_closest_numa_nodes = Chance(50)};
    if (Chance(30)) {
      options.align_resources = {"cpu", "memory", "nic"};
    } else if (Chance(10)) {
      options.align_resources = {};
    }
    return options;
  }

 private:
  HintList NextList(const Machine& machine, int max_hints) {
    if (Chance(7)) {
      return HintList::NoPreference();
    }
    if (Chance(4)) {
      return HintList::Impossible();
    }
    std::vector<TopologyHint> hints;
    const int preferred_percent = 20 + Below(70);
    for (int i = 1 + Below(max_hints); i > 0; --i) {
      TopologyHint hint{.preferred = Chance(preferred_percent)};
      for (const NumaNode& node : machine.nodes()) {
        if (Chance(45)) {
          hint.nodes.Add(node.id);
        }
      }
      if (hint.nodes.Empty() && Chance(80)) {
        hint.nodes.Add(machine.nodes().front().id);
      }
      hints.push_back(std::move(hint));
    }
    return HintList(std::move(hints));
  }

  std::mt19937_64 random_;
};

std::string Text(const Machine& machine, const HintsByResource& hints,
                 const MergeOptions& options) {
  std::string text =
      fmt::format("policy {}, closest {}, nodes {}\n", std::string(ToString(options.policy)),
                  options.prefer_closest_numa_nodes, ToString(machine.node_mask()));
  for (const auto& [resource, list] : hints) {
    text += resource + (list.IsNoPreference() ? " no preference" : "");
    for (const TopologyHint& hint : list.hints()) {
      text += " [" + ToString(hint) + "]";
    }
    text += '\n';
  }
  return text;
}

void ExpectLikeProduct(const Machine& machine, const HintsByResource& hints,
                       const MergeOptions& options) {
  const MergeResult fast = MergeHints(machine, hints, options);
  const test::ProductResult plain = test::MergeByProduct(machine, hints, options);
  ASSERT_EQ(fast.admit, plain.admit) << Text(machine, hints, options);
  ASSERT_TRUE(fast.admit || !fast.reasons.empty()) << Text(machine, hints, options);
  if (options.policy == TopologyPolicy::kNumeric) {
    ASSERT_EQ(fast.hints, plain.hints) << Text(machine, hints, options);
    return;
  }
  ASSERT_EQ(fast.merged, plain.merged) << Text(machine, hints, options);
  for (const auto& [resource, hint] : fast.hints) {
    ASSERT_EQ(hint, plain.merged) << Text(machine, hints, options);
  }
}

TEST(MergePropertyTest, EqualsTheProductOfAllListsOnRandomInputs) {
  Inputs inputs(kSeed);
  for (int i = 0; i < kInputs; ++i) {
    const Machine machine = inputs.NextMachine(6);
    const HintsByResource hints = inputs.NextHints(machine, 4, 6);
    ASSERT_NO_FATAL_FAILURE(ExpectLikeProduct(machine, hints, inputs.NextOptions()));
  }
}

/// `hints`, none of them preferred, so that every overlap has to be considered.
HintsByResource Unpreferred(HintsByResource hints) {
  for (auto& [resource, list] : hints) {
    std::vector<TopologyHint> masks = list.hints();
    for (TopologyHint& hint : masks) {
      hint.preferred = false;
    }
    list = HintList(std::move(masks));
  }
  return hints;
}

TEST(MergePropertyTest, EqualsTheProductWhereManyHintsOverlapAndNoneIsPreferred) {
  Inputs inputs(kSeed + 2);
  for (int i = 0; i < test::Rounds(2'000); ++i) {
    const Machine machine = inputs.NextMachine(5);
    const HintsByResource hints = Unpreferred(inputs.NextHints(machine, 3, 24));
    ASSERT_NO_FATAL_FAILURE(ExpectLikeProduct(machine, hints, inputs.NextOptions()));
  }
}

TEST(MergePropertyTest, EqualsTheProductOnMachinesWiderThanAWord) {
  Inputs inputs(kSeed + 1);
  for (int i = 0; i < test::Rounds(2'000); ++i) {
    const Machine machine = inputs.NextMachine(140);
    const HintsByResource hints = inputs.NextHints(machine, 3, 5);
    ASSERT_NO_FATAL_FAILURE(ExpectLikeProduct(machine, hints, inputs.NextOptions()));
  }
}

}  // namespace
}  // namespace qrm::merge_property_test
