// The free CPUs of a layout while some of them are being taken.
#pragma once

#include <array>
#include <vector>

#include "topology/cpu_layout.h"

namespace qrm {

/// Collects CPUs and keeps the free counts of every core, L3, package and node up to date.
///
/// Threads: one. Units: CPUs by the kernel's numbers, counts in CPUs, elements by their index in
///          the layout.
/// Cost:    taking is O(1) per CPU, an order of elements O(n log n) in them, all else O(1) where
///          nothing is said.
/// Source:  Kubernetes 1.36, cpuAccumulator: fewest free CPUs first, then the smallest id.
class CpuAccumulator {
 public:
  /// Of the CPUs of `available` that `layout` knows; `layout` must outlive the accumulator.
  /// Cost: O(CPUs + elements).
  CpuAccumulator(const CpuLayout& layout, const CpuSet& available, int needed);

  /// How many CPUs are still to be taken, and whether none is.
  int needed() const { return needed_; }
  bool satisfied() const { return needed_ == 0; }
  /// The CPUs taken so far, and those that can still be taken.
  const CpuSet& result() const { return result_; }
  const CpuSet& free() const { return free_; }
  /// How many CPUs of an element are free.
  int Free(CpuLayout::Level level, int element) const {
    return free_in_[level][static_cast<std::size_t>(element)];
  }
  /// The free CPUs of an element. Cost: O(CPUs / 64).
  CpuSet FreeCpus(CpuLayout::Level level, int element) const;

  /// Takes CPUs, which must be free.
  void TakeCpu(int cpu);
  void Take(const CpuSet& cpus);

  /// Elements with free CPUs in the order in which they are filled.
  std::vector<int> SortedNodes() const;
  std::vector<int> SortedPackages() const;
  std::vector<int> SortedL3s() const;
  std::vector<int> SortedCores() const;

  /// Takes the wholly free elements of `sorted` that fit into what is still needed.
  void TakeWhole(CpuLayout::Level level, const std::vector<int>& sorted);
  /// Takes wholly free L3s, then the rest from the first L3 whose cores have exactly as many.
  /// Cost: O(CPUs log CPUs).
  void TakeL3s();
  /// Takes CPUs one by one in `order` until nothing is needed. Cost: O(CPUs log CPUs).
  void TakeSingle(CpuOrder order);

 private:
  bool IsWhollyFree(CpuLayout::Level level, int element) const;
  bool TakePartOfL3(int l3);
  /// The elements of `candidates` with free CPUs, sorted.
  std::vector<int> Sorted(CpuLayout::Level level, const std::vector<int>& candidates) const;
  std::vector<int> SortedAll(CpuLayout::Level level) const;
  /// For each element of `outer` in turn the sorted elements of `inner` within it, each once.
  std::vector<int> SortedWithin(CpuLayout::Level outer_level, const std::vector<int>& outer,
                                CpuLayout::Level inner) const;

  const CpuLayout& layout_;
  CpuSet free_;
  CpuSet result_;
  int needed_;
  std::array<std::vector<int>, CpuLayout::kLevels> free_in_;
};

}  // namespace qrm
