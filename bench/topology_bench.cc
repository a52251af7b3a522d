// The speed of merging and making hints and of CPU assignment, and the ratio of the plain product.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "api/base/check.h"
#include "bench/target.h"
#include "test/support/product_merge.h"
#include "topology/cpu_layout.h"
#include "topology/discovery.h"
#include "topology/hint_generation.h"
#include "topology/memory_flow.h"
#include "topology/merge.h"

namespace qrm {
namespace {

Machine Synthetic(const std::string& description) {
  StatusOr<Machine> machine =
      Discover({.kind = MachineSource::Kind::kSynthetic, .argument = description});
  QRM_CHECK(machine.ok());
  return *std::move(machine);
}

Machine MachineOf(int nodes) {
  return Synthetic(fmt::format("package:{} [numa] core:2 pu:2", nodes));
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

void BM_MergeHints(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  const int resources = static_cast<int>(state.range(1));
  const auto masks =
      MasksUpTo(nodes, static_cast<int>(state.range(2)), static_cast<Preference>(state.range(3)));
  const Machine machine = MachineOf(nodes);
  const HintsByResource hints = SameHints(resources, masks);
  for (auto _ : state) {
    benchmark::DoNotOptimize(MergeHints(machine, hints, {}));
  }
  state.counters["masks"] = static_cast<double>(masks.size());
}
// width 8 of 8 nodes: all 255 masks; width 2 of 64 nodes: 2,080; of 128 nodes: 8,256.
BENCHMARK(BM_MergeHints)
    ->ArgNames({"nodes", "resources", "width", "unpreferred"})
    ->Args({8, 3, 8, kCommon})
    ->Args({8, 3, 8, kNone})
    ->Args({64, 5, 2, kCommon})
    ->Args({64, 5, 2, kNone})
    ->Args({128, 3, 2, kCommon})
    ->Args({128, 3, 2, kNone})
    ->Unit(benchmark::kMicrosecond);

/// The same input by the plain product and by MergeHints; `ratio` is how many times slower the
/// product is. A size that the product can finish: 5 nodes x 3 resources x 31 masks.
void BM_MergeByProduct(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  const Machine machine = MachineOf(nodes);
  const HintsByResource hints =
      SameHints(3, MasksUpTo(nodes, nodes, static_cast<Preference>(state.range(1))));
  const auto started = std::chrono::steady_clock::now();
  constexpr int kRepeats = 100;
  for (int i = 0; i < kRepeats; ++i) {
    benchmark::DoNotOptimize(MergeHints(machine, hints, {}));
  }
  const std::chrono::duration<double> fast =
      (std::chrono::steady_clock::now() - started) / kRepeats;
  std::chrono::duration<double> plain{};
  for (auto _ : state) {
    const auto before = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(test::MergeByProduct(machine, hints, {}));
    plain += std::chrono::steady_clock::now() - before;
  }
  state.counters["ratio"] = plain.count() / static_cast<double>(state.iterations()) / fast.count();
}
BENCHMARK(BM_MergeByProduct)
    ->ArgNames({"nodes", "unpreferred"})
    ->Args({4, kCommon})
    ->Args({5, kCommon})
    ->Args({5, kNone})
    ->Unit(benchmark::kMicrosecond);

/// 512 CPUs: 2 packages x 4 nodes x 4 L3s x 8 cores x 2 threads, a quarter of them taken here and
/// there.
Machine LargeMachine() {
  return Synthetic("package:2 group:4 [numa] l3:4 core:8 pu:2");
}

CpuSet MostlyFree(const Machine& machine) {
  CpuSet free = machine.cpu_set();
  for (const CpuGroup& core : machine.cores()) {
    if (core.id % 7 == 0 || core.id % 11 == 0) {
      free -= core.cpus;
    }
  }
  return free;
}

void TakeRepeatedly(benchmark::State& state, const CpuAssignmentOptions& options) {
  const Machine machine = LargeMachine();
  const CpuLayout layout(machine);
  const CpuSet free = MostlyFree(machine);
  QRM_CHECK(machine.cpu_set().Count() == 512);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        TakeCpusNear(layout, free, static_cast<int>(state.range(0)), {}, options));
  }
}

void BM_TakeCpusPacked(benchmark::State& state) {
  TakeRepeatedly(state, {});
}
void BM_TakeCpusAlignedByL3(benchmark::State& state) {
  TakeRepeatedly(state, {.prefer_align_by_l3 = true});
}
void BM_TakeCpusDistributed(benchmark::State& state) {
  TakeRepeatedly(state, {.distribute_across_numa = true});
}
BENCHMARK(BM_TakeCpusPacked)->ArgName("cpus")->Arg(6)->Arg(200)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_TakeCpusAlignedByL3)->ArgName("cpus")->Arg(6)->Arg(200)->Unit(benchmark::kMicrosecond);
BENCHMARK(BM_TakeCpusDistributed)->ArgName("cpus")->Arg(6)->Arg(200)->Unit(benchmark::kMicrosecond);

void BM_CpuLayout(benchmark::State& state) {
  const Machine machine = LargeMachine();
  for (auto _ : state) {
    benchmark::DoNotOptimize(CpuLayout(machine));
  }
}
BENCHMARK(BM_CpuLayout)->Unit(benchmark::kMicrosecond);

/// An amount that `width` nodes hold, on nodes that are half used.
void BM_GenerateHints(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  const Machine machine = MachineOf(nodes);
  NodeAmounts amounts;
  for (int node = 0; node < nodes; ++node) {
    amounts.total[node] = 4;
    amounts.free[node] = 2 + node % 3;
  }
  const double amount = 4.0 * static_cast<double>(state.range(1));
  std::size_t hints = 0;
  for (auto _ : state) {
    hints = GenerateHints(machine, amount, amounts).hints().size();
  }
  state.counters["hints"] = static_cast<double>(hints);
}
BENCHMARK(BM_GenerateHints)
    ->ArgNames({"nodes", "width"})
    ->Args({8, 1})
    ->Args({64, 1})
    ->Args({64, 2})
    ->Args({64, 8})
    ->Unit(benchmark::kMicrosecond);

// Every holder is on two neighbouring nodes: a request for all available memory of the first node
// moves them one after another.
void BM_MemoryFlowFits(benchmark::State& state) {
  const int nodes = static_cast<int>(state.range(0));
  const int holders = static_cast<int>(state.range(1));
  constexpr uint64_t kPart = 1 << 20;
  NodeBytes free;
  for (int node = 0; node < nodes; ++node) {
    free[node] = kPart * static_cast<uint64_t>(holders / nodes + 1);
  }
  MemoryFlow flow(free);
  for (int holder = 0; holder < holders; ++holder) {
    const int node = holder % std::max(nodes - 1, 1);
    QRM_CHECK(flow.Take({node, node + 1}, kPart).has_value());
  }
  const uint64_t room = flow.Room({0});
  for (auto _ : state) {
    benchmark::DoNotOptimize(flow.Fits({0}, room));
  }
}
BENCHMARK(BM_MemoryFlowFits)->ArgNames({"nodes", "holders"})->Args({8, 500})->Args({64, 500});

/// The slower of the two preferences.
void JudgeMerge(int nodes, int resources, int width, double target_ms) {
  constexpr int kTurns = 51;
  const Machine machine = MachineOf(nodes);
  double slowest = 0;
  for (const Preference preference : {kCommon, kNone}) {
    const HintsByResource hints = SameHints(resources, MasksUpTo(nodes, width, preference));
    std::vector<double> took_ms;
    for (int i = 0; i < kTurns; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      benchmark::DoNotOptimize(MergeHints(machine, hints, {}));
      const std::chrono::duration<double, std::milli> took =
          std::chrono::steady_clock::now() - begin;
      took_ms.push_back(took.count());
    }
    slowest = std::max(slowest, bench::Median(took_ms));
  }
  bench::Judge(fmt::format("merge, {} nodes x {} resources, p50", nodes, resources), target_ms,
               slowest, "ms");
}

}  // namespace
}  // namespace qrm

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return EXIT_FAILURE;
  }
  benchmark::RunSpecifiedBenchmarks();
  qrm::JudgeMerge(8, 3, 8, 1);
  qrm::JudgeMerge(64, 5, 2, 10);
  return EXIT_SUCCESS;
}
