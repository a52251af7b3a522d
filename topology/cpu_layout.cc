// Indexes a machine's CPUs by what they share; filters what may be used, then takes in the order
// that the options name.
#include "topology/cpu_layout.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "api/base/errorf.h"

namespace qrm {
namespace {

std::vector<CpuGroup> NodesWithCpus(const Machine& machine) {
  std::vector<CpuGroup> nodes;
  for (const NumaNode& node : machine.nodes()) {
    if (!node.cpus.Empty()) {
      nodes.push_back({.id = node.id, .cpus = node.cpus});
    }
  }
  return nodes;
}

/// The L3s of Cpu::l3, which stands for the package where none is known.
std::vector<CpuGroup> L3s(const Machine& machine) {
  std::map<int, CpuSet> by_id;
  for (const Cpu& cpu : machine.cpus()) {
    by_id[cpu.l3].Add(cpu.id);
  }
  std::vector<CpuGroup> l3s;
  l3s.reserve(by_id.size());
  for (auto& [id, cpus] : by_id) {
    l3s.push_back({.id = id, .cpus = std::move(cpus)});
  }
  return l3s;
}

OuterLevel OuterOf(const Machine& machine) {
  return machine.packages().size() >= NodesWithCpus(machine).size() ? OuterLevel::kNuma
                                                                    : OuterLevel::kPackage;
}

StatusOr<CpuSet> Take(const CpuLayout& layout, const CpuSet& available, int count,
                      const CpuAssignmentOptions& options) {
  const CpuOrder order = options.distribute_across_cores ? CpuOrder::kSpread : CpuOrder::kPacked;
  if (options.distribute_across_numa) {
    const int group = options.full_physical_cpus_only ? ThreadsPerCore(layout) : 1;
    return TakeDistributed(layout, available, count, group, order);
  }
  return TakePacked(layout, available, count, order,
                    options.prefer_align_by_l3 ? L3Alignment::kPrefer : L3Alignment::kIgnore);
}

/// Errors: kResourceExhausted when `taken` splits a core, which unlike cores make possible.
StatusOr<CpuSet> Whole(const Machine& machine, const CpuSet& taken, int count) {
  if (machine.CoresOf(taken) != taken) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot take {} CPUs as whole cores: the free cores have other sizes; ask for a "
                  "number that whole cores add up to",
                  count);
  }
  return taken;
}

}  // namespace

CpuLayout::CpuLayout(const Machine& machine) : CpuLayout(machine, {}, OuterOf(machine)) {}

CpuLayout::CpuLayout(const Machine& machine, const CpuSizes& sizes, OuterLevel outer)
    : machine_(&machine), sizes_(sizes), outer_(outer) {
  AddElements(kCore, machine.cores());
  AddElements(kL3, L3s(machine));
  AddElements(kPackage, machine.packages());
  AddElements(kNode, NodesWithCpus(machine));
  Nest(kNode, kPackage);
  Nest(kNode, kL3);
  Nest(kNode, kCore);
  Nest(kPackage, kNode);
  Nest(kPackage, kCore);
  Nest(kL3, kCore);
}

CpuLayout CpuLayout::LikeKubelet(const Machine& machine) {
  const int cpus = machine.cpu_set().Count();
  const auto average = [cpus](std::size_t count) {
    return count == 0 ? 0 : cpus / static_cast<int>(count);
  };
  return CpuLayout(machine,
                   {.per_core = average(machine.cores().size()),
                    .per_package = average(machine.packages().size()),
                    .per_l3 = average(L3s(machine).size())},
                   OuterOf(machine));
}

void CpuLayout::AddElements(Level level, const std::vector<CpuGroup>& groups) {
  elements_[level] = groups;
  std::vector<int>& of = element_of_[level];
  of.assign(static_cast<std::size_t>(all().Last()) + 1, -1);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (const int cpu : groups[i].cpus) {
      of[static_cast<std::size_t>(cpu)] = static_cast<int>(i);
    }
  }
}

void CpuLayout::Nest(Level outer, Level inner) {
  std::vector<std::vector<int>>& lists = within_[outer][inner];
  lists.assign(elements_[outer].size(), {});
  for (const int cpu : all()) {
    lists[static_cast<std::size_t>(ElementOf(outer, cpu))].push_back(ElementOf(inner, cpu));
  }
  for (std::vector<int>& list : lists) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
}

Status ValidateCpuAssignmentOptions(const CpuAssignmentOptions& options) {
  struct Pair {
    bool both;
    std::string_view first;
    std::string_view second;
  };
  const Pair pairs[] = {{options.full_physical_cpus_only && options.distribute_across_cores,
                         "full-pcpus-only", "distribute-cpus-across-cores"},
                        {options.distribute_across_numa && options.distribute_across_cores,
                         "distribute-cpus-across-numa", "distribute-cpus-across-cores"},
                        {options.prefer_align_by_l3 && options.distribute_across_cores,
                         "prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"},
                        {options.prefer_align_by_l3 && options.distribute_across_numa,
                         "prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"}};
  for (const Pair& pair : pairs) {
    if (pair.both) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot combine CPU options {} and {}: they contradict each other; drop one",
                    pair.first, pair.second);
    }
  }
  return OkStatus();
}

StatusOr<CpuSet> TakeCpusNear(const Machine& machine, const CpuSet& available, int count,
                              const NumaMask& affinity, const CpuAssignmentOptions& options) {
  return TakeCpusNear(CpuLayout(machine), available, count, affinity, options);
}

StatusOr<CpuSet> TakeCpusNear(const CpuLayout& layout, const CpuSet& available, int count,
                              const NumaMask& affinity, const CpuAssignmentOptions& options) {
  CpuSet usable = available;
  if (options.full_physical_cpus_only) {
    QRM_RETURN_IF_ERROR(CheckWholeCoreCount(layout, count));
    usable = layout.machine().WholeCores(usable);
  }
  QRM_ASSIGN_OR_RETURN(const CpuSet taken,
                       TakeCpusLikeKubelet(layout, usable, count, affinity, options));
  return options.full_physical_cpus_only ? Whole(layout.machine(), taken, count) : taken;
}

StatusOr<CpuSet> TakeCpusLikeKubelet(const CpuLayout& layout, const CpuSet& available, int count,
                                     const NumaMask& affinity,
                                     const CpuAssignmentOptions& options) {
  CpuSet taken;
  if (!affinity.Empty() && available.Count() >= count) {  // else the error has all numbers
    const CpuSet near = available & (options.align_by_socket ? layout.machine().PackagesOf(affinity)
                                                             : layout.machine().CpusOf(affinity));
    QRM_ASSIGN_OR_RETURN(taken, Take(layout, near, std::min(count, near.Count()), options));
  }
  if (const int missing = count - taken.Count(); missing > 0) {
    QRM_ASSIGN_OR_RETURN(const CpuSet rest, Take(layout, available - taken, missing, options));
    taken |= rest;
  }
  return taken;
}

Status CheckWholeCoreCount(const CpuLayout& layout, int count) {
  const int threads = ThreadsPerCore(layout);
  if (count % threads == 0) {
    return OkStatus();
  }
  return Errorf(StatusCode::kInvalidArgument,
                "cannot take {} CPUs as whole cores: a core has {} CPUs; ask for a multiple of {}",
                count, threads, threads);
}

int ThreadsPerCore(const CpuLayout& layout) {
  if (layout.sizes().per_core > 0) {
    return layout.sizes().per_core;
  }
  int threads = 0;
  for (const CpuGroup& core : layout.elements(CpuLayout::kCore)) {
    const int size = core.cpus.Count();
    threads = threads == 0 ? size : std::min(threads, size);
  }
  return std::max(threads, 1);
}

}  // namespace qrm
