// Chooses CPUs from a set of free ones, by kubelet's rules.
#pragma once

#include "api/base/status.h"
#include "api/id_set.h"
#include "topology/cpu_layout.h"
#include "topology/machine.h"

namespace qrm {

/// How CPUs are chosen. Source: Kubernetes 1.36, static policy options.
struct CpuAssignmentOptions {
  bool full_physical_cpus_only = false;  ///< hand out whole cores only
  bool distribute_across_numa = false;  ///< even split over NUMA nodes when more than one is needed
  bool distribute_across_cores = false;  ///< no sibling packing
  bool prefer_align_by_l3 = false;       ///< try to stay inside one L3
  bool align_by_socket = false;          ///< widen a NUMA hint to its sockets
};

/// OK when `options` go together. Errors: kInvalidArgument naming the two that do not.
/// Cost: O(1). Source: Kubernetes 1.36, static policy options.
Status ValidateCpuAssignmentOptions(const CpuAssignmentOptions& options);

/// `count` CPUs of `available`, those within `affinity` first and the rest from elsewhere; empty
/// `affinity`: no preference. Packed NUMA node or socket first, then L3, core, thread, unless
/// `options` say otherwise. Errors: kResourceExhausted with both numbers when there are too few,
/// kInvalidArgument when whole cores were asked for and `count` is not a multiple of the threads
/// per core. Units: CPUs, by the kernel's numbers. Cost: O(n log n) in CPUs for the packed orders;
/// TakeDistributed's when distributed. Source: Kubernetes 1.36 takeByTopology, and the static
/// policy's allocateCPUs.
StatusOr<CpuSet> TakeCpusNear(const Machine& machine, const CpuSet& available, int count,
                              const NumaMask& affinity, const CpuAssignmentOptions& options = {});

/// The same for a `layout` that the caller keeps: one that serves many requests saves building it
/// each time. Errors, units, cost, source: as above.
StatusOr<CpuSet> TakeCpusNear(const CpuLayout& layout, const CpuSet& available, int count,
                              const NumaMask& affinity, const CpuAssignmentOptions& options = {});

/// The same without the promise of whole cores: with `full_physical_cpus_only` a core whose sibling
/// is not available may be split, and the count is not checked, as in kubelet's allocateCPUs.
/// Errors, units, cost: as TakeCpusNearNear. Source: Kubernetes 1.36, static policy, allocateCPUs.
StatusOr<CpuSet> TakeCpusLikeKubelet(const CpuLayout& layout, const CpuSet& available, int count,
                                     const NumaMask& affinity, const CpuAssignmentOptions& options);

/// The CPUs that every whole-core request is a multiple of: the threads of the smallest core, or
/// what `layout` declares. Units: CPUs. Cost: O(cores). Source: Kubernetes 1.36, CPUsPerCore.
int ThreadsPerCore(const CpuLayout& layout);

/// OK when `count` CPUs can be whole cores of `layout`. Errors: kInvalidArgument.
Status CheckWholeCoreCount(const CpuLayout& layout, int count);

}  // namespace qrm
