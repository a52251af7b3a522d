// How the CPUs of a machine nest, indexed for assignment, and how CPUs are chosen from a set of
// free ones, by kubelet's rules.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "topology/machine.h"

namespace qrm {

/// Sizes by which a core or package counts as wholly free. Kubelet divides totals, which mis-sizes
/// machines with unlike cores or offline siblings; 0 means the true size of each one.
/// Units: CPUs. Source: Kubernetes 1.36, CPUTopology::CPUsPerCore and its siblings.
struct CpuSizes {
  int per_core = 0;
  int per_package = 0;
  int per_l3 = 0;
};

/// Whether packages nest in NUMA nodes or NUMA nodes in packages; the outer ones are filled first.
/// Source: Kubernetes 1.36, newCPUAccumulator: NUMA nodes when there are at least as many packages.
enum class OuterLevel { kNuma, kPackage };

/// A machine's CPUs by core, L3, package and NUMA node. Build it once and take from it often.
///
/// Threads: immutable, any. Units: the kernel's CPU numbers. Cost: O(1) but where said.
/// Source:  Kubernetes 1.36, CPUTopology.
class CpuLayout {
 public:
  enum Level { kCore, kL3, kPackage, kNode };
  static constexpr std::size_t kLevels = 4;

  /// Of all online CPUs of `machine`, which must outlive the layout. Cost: O(CPUs log CPUs).
  explicit CpuLayout(const Machine& machine);
  /// The same with sizes and order as declared by someone else. Cost: the same.
  CpuLayout(const Machine& machine, const CpuSizes& sizes, OuterLevel outer);
  /// The same with the sizes that kubelet computes: the average of each level. Cost: the same.
  static CpuLayout LikeKubelet(const Machine& machine);

  /// The elements of a level, by ascending id; their position is their index below.
  const std::vector<CpuGroup>& elements(Level level) const { return elements_[level]; }
  /// The index of the element of `level` that `cpu` (a CPU of all()) is in.
  int ElementOf(Level level, int cpu) const {
    return element_of_[level][static_cast<std::size_t>(cpu)];
  }
  /// Indexes of the elements of `inner` that have CPUs in element `index` of `outer`, ascending.
  /// `inner` must be within kNode: cores, L3s and packages; within kPackage: cores and nodes.
  const std::vector<int>& Within(Level outer, int index, Level inner) const {
    return within_[outer][inner][static_cast<std::size_t>(index)];
  }

  const Machine& machine() const { return *machine_; }
  const CpuSet& all() const { return machine_->cpu_set(); }
  const CpuSizes& sizes() const { return sizes_; }
  OuterLevel outer() const { return outer_; }

 private:
  void AddElements(Level level, const std::vector<CpuGroup>& groups);
  void Nest(Level outer, Level inner);

  const Machine* machine_;
  CpuSizes sizes_;
  OuterLevel outer_ = OuterLevel::kNuma;
  std::array<std::vector<CpuGroup>, kLevels> elements_;
  std::array<std::vector<int>, kLevels> element_of_;  // level -> CPU id -> index, or -1
  std::array<std::array<std::vector<std::vector<int>>, kLevels>, kLevels> within_;
};

/// The order of single CPUs. Source: Kubernetes 1.36, CPUSortingStrategy.
enum class CpuOrder {
  kPacked,  ///< sibling threads first
  kSpread,  ///< one thread per core first
};

/// Whether to try to stay within L3s. Source: Kubernetes 1.36, prefer-align-cpus-by-uncorecache.
enum class L3Alignment { kIgnore, kPrefer };

/// `count` CPUs of `available`: whole outer elements (NUMA nodes or packages), whole inner ones,
/// L3s if preferred, whole cores, single threads; the element with fewest free CPUs first.
/// Errors: kResourceExhausted with both numbers when there are too few.
/// Units:  CPUs, by the kernel's numbers. Cost: O(CPUs log CPUs).
/// Source: Kubernetes 1.36, takeByTopologyNUMAPacked.
StatusOr<CpuSet> TakePacked(const CpuLayout& layout, const CpuSet& available, int count,
                            CpuOrder order = CpuOrder::kPacked,
                            L3Alignment l3 = L3Alignment::kIgnore);

/// `count` CPUs of `available`, evenly over as few NUMA nodes as hold them, `group_size` (a core's
/// threads, or 1) at a time; packed when they cannot be split evenly.
/// Errors, units: as TakePacked.
/// Cost:   exact up to 8 NUMA nodes, at most 3^nodes balances; beyond, nodes with equally many free
///         CPUs are interchangeable and at most 4,096 choices of each width are compared.
/// Source: Kubernetes 1.36, takeByTopologyNUMADistributed, with kubernetes PRs 140730 (whole
///         groups) and 141238 (the chosen nodes are the ones used).
StatusOr<CpuSet> TakeDistributed(const CpuLayout& layout, const CpuSet& available, int count,
                                 int group_size, CpuOrder order = CpuOrder::kPacked);

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
