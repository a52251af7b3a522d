// Filters what may be used, then takes in the order that the options name.
#include "topology/cpu_assignment.h"

#include <algorithm>
#include <string_view>

#include "api/base/errorf.h"

namespace qrm {
namespace {

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
