// Kubelet's static CPU policy as pure functions: which of the free CPUs a container gets.
#pragma once

#include "api/base/status.h"
#include "api/hint.h"
#include "api/id_set.h"
#include "topology/cpu_layout.h"
#include "topology/machine.h"

namespace qrm {

/// What a container may take. Units: the kernel's CPU numbers.
/// Source: Kubernetes 1.36, CPU manager, static policy.
struct StaticCpuRoom {
  CpuSet free;      ///< shared and not reserved
  CpuSet reusable;  ///< held by init containers of its pod alone, which have ended when it starts
};

/// The CPUs to reserve: `listed` when it is not empty, else `count` taken from the whole machine.
/// Errors: kInvalidArgument when `listed` has not `count` CPUs or CPUs the machine does not have.
/// Units:  the kernel's CPU numbers. Cost: TakeCpusNear's. Source: Kubernetes 1.36,
/// NewStaticPolicy.
StatusOr<CpuSet> ReservedCpus(const CpuLayout& layout, int count, const CpuSet& listed,
                              const CpuAssignmentOptions& options);

/// The policy on one machine.
///
/// Threads: immutable, any. Units: CPUs and nodes by the kernel's numbers.
/// Source:  Kubernetes 1.36, CPU manager, static policy.
class StaticCpuPolicy {
 public:
  /// The machine of `layout` must outlive the policy. `reserved` is never handed out. Cost: O(1).
  StaticCpuPolicy(CpuLayout layout, CpuAssignmentOptions options, CpuSet reserved);

  /// `count` CPUs of `room`, those within `affinity` first; no nodes: anywhere.
  /// Errors: kInvalidArgument for a count that no whole cores give, kResourceExhausted for too few
  ///         free CPUs. Cost: TakeCpusNear's.
  StatusOr<CpuSet> Take(const StaticCpuRoom& room, int count, const NumaMask& affinity) const;

  /// The NUMA masks with enough of `room` for `count` CPUs; preferred are those as narrow as the
  /// machine's size allows (align_by_socket: or within as few sockets). At most 4,096 masks, narrow
  /// ones first; impossible when there is none. Cost: GenerateHints'.
  HintList Hints(const StaticCpuRoom& room, int count) const;

  /// The same for a container that has the CPUs `held`; impossible when `count` is another number.
  HintList HeldHints(const CpuSet& held, int count) const;

  /// OK when Take may give `count` CPUs of `room` as far as whole cores go.
  /// Errors: Take's. Cost: O(CPUs).
  Status CheckCores(const StaticCpuRoom& room, int count) const;

  const CpuSet& reserved() const { return reserved_; }

 private:
  int NarrowestWidth(int count) const;
  bool IsSocketAligned(const NumaMask& mask, int narrowest) const;

  CpuLayout layout_;
  CpuAssignmentOptions options_;
  CpuSet reserved_;
};

}  // namespace qrm
