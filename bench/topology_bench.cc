// The speed of merging hints.
//   topology_bench [--smoke]
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "api/base/check.h"
#include "bench/command_line.h"
#include "bench/target.h"
#include "topology/discovery.h"
#include "topology/merge.h"

namespace qrm::bench {
namespace {

Machine MachineOf(int nodes) {
  StatusOr<Machine> machine =
      Discover({.kind = MachineSource::Kind::kSynthetic,
                .argument = fmt::format("package:{} [numa] core:2 pu:2", nodes)});
  QRM_CHECK(machine.ok());
  return *std::move(machine);
}

/// Which hints the resources prefer.
enum Preference {
  kCommon,  ///< the narrowest ones, as plugins do: a preferred mask in common is found at once
  kNone,    ///< none is preferred: every overlap of the lists has to be considered
};

/// All masks of up to `width` nodes.
std::vector<TopologyHint> MasksUpTo(int nodes, int width, Preference preference) {
  std::vector<TopologyHint> hints;
  std::vector<NumaMask> masks = {NumaMask()};
  for (int node = 0; node < nodes; ++node) {
    const std::size_t count = masks.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (masks[i].Count() < width) {
        masks.push_back(masks[i]);
        masks.back().Add(node);
        hints.push_back({.nodes = masks.back(),
                         .preferred = preference == kCommon && masks.back().Count() == 1});
      }
    }
  }
  return hints;
}

HintsByResource SameHints(int resources, const std::vector<TopologyHint>& masks) {
  HintsByResource hints;
  for (int i = 0; i < resources; ++i) {
    hints[fmt::format("resource{}", i)] = HintList(masks);
  }
  return hints;
}

struct Sizes {
  int nodes;
  int resources;
  int width;  ///< of the widest masks: 8 of 8 nodes are all 255 masks, 2 of 64 nodes 2,080
};

/// The slower of the two preferences.
bool JudgeMerge(const Sizes& sizes, double target_ms, int turns) {
  const Machine machine = MachineOf(sizes.nodes);
  double slowest = 0;
  for (const Preference preference : {kCommon, kNone}) {
    const HintsByResource hints =
        SameHints(sizes.resources, MasksUpTo(sizes.nodes, sizes.width, preference));
    std::vector<double> took_ms;
    took_ms.reserve(static_cast<std::size_t>(turns));
    for (int i = 0; i < turns; ++i) {
      took_ms.push_back(MicrosecondsOf([&] { (void)MergeHints(machine, hints, {}); }) / 1e3);
    }
    slowest = std::max(slowest, Median(took_ms));
  }
  return Judge(fmt::format("merge, {} nodes x {} resources, p50", sizes.nodes, sizes.resources),
               target_ms, slowest, "ms");
}

int Main(const CommandLine& options) {
  const int turns = options.smoke ? 1 : 51;
  const bool small = JudgeMerge({.nodes = 8, .resources = 3, .width = 8}, 1, turns);
  return options.StatusOf(JudgeMerge({.nodes = 64, .resources = 5, .width = 2}, 10, turns) &&
                          small);
}

}  // namespace
}  // namespace qrm::bench

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  return qrm::bench::Main(qrm::bench::ReadCommandLine(argc, argv));
}
