// Kubelet's static CPU policy as pure functions: exclusive CPUs for integral requests, a shared
// rest.
#pragma once

#include <map>
#include <string>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/id_set.h"
#include "topology/container_role.h"
#include "topology/cpu_assignment.h"
#include "topology/cpu_layout.h"
#include "topology/machine.h"

namespace qrm {

/// What the policy has handed out. Units: the kernel's CPU numbers.
/// Source: Kubernetes 1.36, CPU manager's state.
struct StaticCpuState {
  CpuSet shared;  ///< for everyone without exclusive CPUs
  std::map<std::string, std::map<std::string, CpuSet>> assignments;  ///< pod uid -> container
  std::string reusable_pod;  ///< the pod that `reusable` belongs to
  CpuSet reusable;           ///< CPUs of its init containers, free for its later containers

  bool operator==(const StaticCpuState&) const = default;
};

/// Whether reserved CPUs may be shared. Source: Kubernetes 1.36, strict-cpu-reservation.
enum class StrictReservation {
  kNo,   ///< reserved CPUs stay in the shared pool
  kYes,  ///< and are for the system alone
};

/// The policy's settings. Units: the kernel's CPU numbers.
/// Source: Kubernetes 1.36, NewStaticPolicy.
struct StaticCpuConfig {
  CpuAssignmentOptions options;
  StrictReservation strict = StrictReservation::kNo;
  CpuSet reserved;  ///< never handed out exclusively
};

/// A container that asks for `count` CPUs of its own.
/// Units: CPUs; nodes by the kernel's numbers. Source: the pod's resources and the merged hint.
struct ExclusiveCpuRequest {
  std::string pod;  ///< uid
  std::string container;
  ContainerRole role = ContainerRole::kApp;
  int count = 0;      ///< CPUs; 0: none of its own
  NumaMask affinity;  ///< merged hint; empty: anywhere
};

/// The CPUs to reserve: `listed` when it is not empty, else `count` taken from the whole machine.
/// Errors: kInvalidArgument when `listed` has not `count` CPUs or CPUs the machine does not have.
/// Units:  the kernel's CPU numbers. Cost: TakeCpus'. Source: Kubernetes 1.36, NewStaticPolicy.
StatusOr<CpuSet> ReservedCpus(const CpuLayout& layout, int count, const CpuSet& listed,
                              const CpuAssignmentOptions& options);

/// The policy on one machine. Every function takes a state and returns what follows from it.
///
/// Threads: immutable, any. Units: CPUs and nodes by the kernel's numbers.
/// Source:  Kubernetes 1.36, CPU manager, static policy.
class StaticCpuPolicy {
 public:
  /// The machine of `layout` must outlive the policy. Cost: O(1).
  StaticCpuPolicy(CpuLayout layout, StaticCpuConfig config);

  /// `state` ready to work on: all CPUs shared when it is empty, else as it is.
  /// Errors: kFailedPrecondition when it contradicts itself, the reservation or the machine.
  /// Cost:   O(containers x CPUs / 64).
  StatusOr<StaticCpuState> Start(const StaticCpuState& state) const;

  /// `state` with CPUs for `request`; a container that has CPUs keeps them.
  /// Errors: kInvalidArgument for a count that no whole cores give, kResourceExhausted for too few
  ///         free CPUs; both only say so, `state` is not changed.
  /// Cost:   TakeCpus'.
  StatusOr<StaticCpuState> Allocate(const StaticCpuState& state,
                                    const ExclusiveCpuRequest& request) const;

  /// `state` without the container; CPUs that its pod's other containers use stay exclusive.
  /// Cost: O(containers of the pod x CPUs / 64).
  StaticCpuState Remove(const StaticCpuState& state, const std::string& pod,
                        const std::string& container) const;

  /// The NUMA masks with enough free CPUs for `request`; preferred are those as narrow as the
  /// machine's size allows (align_by_socket: or within as few sockets). Impossible when the
  /// container already has another number of CPUs. At most 4,096 masks, narrow ones first.
  /// Cost: GenerateHints'.
  HintList Hints(const StaticCpuState& state, const ExclusiveCpuRequest& request) const;

 private:
  Status CheckWholeCores(const StaticCpuState& state, int count) const;
  CpuSet Reusable(const StaticCpuState& state, const std::string& pod) const;
  HintList HintsFrom(const CpuSet& available, const CpuSet& reusable, int count) const;
  bool IsSocketAligned(const NumaMask& mask, int narrowest) const;

  CpuLayout layout_;
  StaticCpuConfig config_;
};

}  // namespace qrm
