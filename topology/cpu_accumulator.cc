// Orders the elements of a layout and takes them step by step.
#include "topology/cpu_accumulator.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "api/base/errorf.h"

namespace qrm {

using Level = CpuLayout::Level;

CpuAccumulator::CpuAccumulator(const CpuLayout& layout, const CpuSet& available, int needed)
    : layout_(layout), free_(available & layout.all()), needed_(needed) {
  for (const Level level :
       {CpuLayout::kCore, CpuLayout::kL3, CpuLayout::kPackage, CpuLayout::kNode}) {
    std::vector<int>& counts = free_in_[level];
    counts.assign(layout.elements(level).size(), 0);
    for (const int cpu : free_) {
      ++counts[static_cast<std::size_t>(layout.ElementOf(level, cpu))];
    }
  }
}

CpuSet CpuAccumulator::FreeCpus(Level level, int element) const {
  return layout_.elements(level)[static_cast<std::size_t>(element)].cpus & free_;
}

void CpuAccumulator::TakeCpu(int cpu) {
  free_.Remove(cpu);
  result_.Add(cpu);
  --needed_;
  for (const Level level :
       {CpuLayout::kCore, CpuLayout::kL3, CpuLayout::kPackage, CpuLayout::kNode}) {
    --free_in_[level][static_cast<std::size_t>(layout_.ElementOf(level, cpu))];
  }
}

void CpuAccumulator::Take(const CpuSet& cpus) {
  for (const int cpu : cpus) {
    TakeCpu(cpu);
  }
}

std::vector<int> CpuAccumulator::Sorted(Level level, const std::vector<int>& candidates) const {
  std::vector<int> sorted;
  sorted.reserve(candidates.size());
  std::ranges::copy_if(candidates, std::back_inserter(sorted),
                       [this, level](int element) { return Free(level, element) > 0; });
  std::ranges::sort(sorted, [this, level](int a, int b) {
    return std::pair(Free(level, a), a) < std::pair(Free(level, b), b);
  });
  return sorted;
}

std::vector<int> CpuAccumulator::SortedAll(Level level) const {
  std::vector<int> all(layout_.elements(level).size());
  std::iota(all.begin(), all.end(), 0);
  return Sorted(level, all);
}

std::vector<int> CpuAccumulator::SortedWithin(Level outer_level, const std::vector<int>& outer,
                                              Level inner) const {
  std::vector<int> result;
  std::vector<bool> seen(layout_.elements(inner).size(), false);
  for (const int element : outer) {
    for (const int within : Sorted(inner, layout_.Within(outer_level, element, inner))) {
      if (!seen[static_cast<std::size_t>(within)]) {
        seen[static_cast<std::size_t>(within)] = true;
        result.push_back(within);
      }
    }
  }
  return result;
}

std::vector<int> CpuAccumulator::SortedNodes() const {
  return layout_.outer() == OuterLevel::kNuma
             ? SortedAll(CpuLayout::kNode)
             : SortedWithin(CpuLayout::kPackage, SortedAll(CpuLayout::kPackage), CpuLayout::kNode);
}

std::vector<int> CpuAccumulator::SortedPackages() const {
  return layout_.outer() == OuterLevel::kPackage
             ? SortedAll(CpuLayout::kPackage)
             : SortedWithin(CpuLayout::kNode, SortedAll(CpuLayout::kNode), CpuLayout::kPackage);
}

std::vector<int> CpuAccumulator::SortedL3s() const {
  return SortedWithin(CpuLayout::kNode, SortedNodes(), CpuLayout::kL3);
}

std::vector<int> CpuAccumulator::SortedCores() const {
  return layout_.outer() == OuterLevel::kNuma
             ? SortedWithin(CpuLayout::kPackage, SortedPackages(), CpuLayout::kCore)
             : SortedWithin(CpuLayout::kNode, SortedNodes(), CpuLayout::kCore);
}

bool CpuAccumulator::IsWhollyFree(Level level, int element) const {
  int size = 0;
  if (level == CpuLayout::kCore) {
    size = layout_.sizes().per_core;
  } else if (level == CpuLayout::kPackage) {
    size = layout_.sizes().per_package;
  }
  if (size == 0) {
    size = layout_.elements(level)[static_cast<std::size_t>(element)].cpus.Count();
  }
  return Free(level, element) == size;
}

void CpuAccumulator::TakeWhole(Level level, const std::vector<int>& sorted) {
  for (const int element : sorted) {
    if (IsWhollyFree(level, element) && Free(level, element) <= needed_) {
      Take(FreeCpus(level, element));
    }
  }
}

/// Takes the lowest cores of the L3 if they hold exactly what is needed, except one sibling.
bool CpuAccumulator::TakePartOfL3(int l3) {
  const std::vector<int>& cores = layout_.Within(CpuLayout::kL3, l3, CpuLayout::kCore);
  int threads = layout_.sizes().per_core;
  if (threads == 0) {
    for (const int core : cores) {
      threads = std::max(
          threads, layout_.elements(CpuLayout::kCore)[static_cast<std::size_t>(core)].cpus.Count());
    }
  }
  int cores_needed = (needed_ + threads - 1) / threads;
  CpuSet cpus;
  for (const int core : cores) {
    if (cores_needed > 0 && Free(CpuLayout::kCore, core) > 0) {
      cpus |= FreeCpus(CpuLayout::kCore, core);
      --cores_needed;
    }
  }
  if (needed_ % 2 != 0 && threads > 1 && cpus.Count() > needed_) {
    cpus.Remove(cpus.Last());
  }
  if (cpus.Count() != needed_) {
    return false;
  }
  Take(cpus);
  return true;
}

void CpuAccumulator::TakeL3s() {
  const std::vector<int> sorted = SortedL3s();
  if (needed_ >= layout_.sizes().per_l3) {
    TakeWhole(CpuLayout::kL3, sorted);
  }
  for (const int l3 : sorted) {
    if (satisfied() || TakePartOfL3(l3)) {
      return;
    }
  }
}

void CpuAccumulator::TakeSingle(CpuOrder order) {
  const Level level = order == CpuOrder::kPacked ? CpuLayout::kCore : CpuLayout::kPackage;
  for (const int element : order == CpuOrder::kPacked ? SortedCores() : SortedPackages()) {
    for (const int cpu : FreeCpus(level, element)) {
      if (satisfied()) {
        return;
      }
      TakeCpu(cpu);
    }
  }
}

namespace {

Status TooFew(int requested, int available) {
  return Errorf(StatusCode::kResourceExhausted,
                "cannot take {} CPUs: only {} are free; ask for fewer or free some", requested,
                available);
}

}  // namespace

StatusOr<CpuSet> TakePacked(const CpuLayout& layout, const CpuSet& available, int count,
                            CpuOrder order, L3Alignment l3) {
  if (count <= 0) {
    return CpuSet();
  }
  CpuAccumulator taken(layout, available, count);
  if (taken.free().Count() < count) {
    return TooFew(count, taken.free().Count());
  }
  if (layout.outer() == OuterLevel::kNuma) {
    taken.TakeWhole(CpuLayout::kNode, taken.SortedNodes());
    taken.TakeWhole(CpuLayout::kPackage, taken.SortedPackages());
  } else {
    taken.TakeWhole(CpuLayout::kPackage, taken.SortedPackages());
    taken.TakeWhole(CpuLayout::kNode, taken.SortedNodes());
  }
  if (l3 == L3Alignment::kPrefer && !taken.satisfied()) {
    taken.TakeL3s();
  }
  if (order == CpuOrder::kPacked && !taken.satisfied()) {
    taken.TakeWhole(CpuLayout::kCore, taken.SortedCores());
  }
  if (!taken.satisfied()) {
    taken.TakeSingle(order);
  }
  return taken.result();
}

}  // namespace qrm
