// The pods that the model test makes, and what each of their containers may expect.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "test/e2e/kubelet.h"

namespace qrm::test {

/// A container of a pod, with its expected allocation.
struct PlannedContainer {
  enum class Kind { kInit, kSidecar, kApp };

  ContainerSpec spec;
  Kind kind = Kind::kApp;
  int nic_mbps = 0;
  /// The number of exclusive CPUs of its first allocation: it never has fewer. Several numbers
  /// where it was resized before that was seen; none: it shares.
  std::set<int> baselines;
  int64_t bound_bytes = 0;  ///< of one NUMA node
  uint32_t attempt = 0;     ///< restarts so far

  bool owns_cpus() const { return !baselines.empty(); }
  /// The most that it may use by its limit, or by its request where it has none.
  int64_t most_milli_cpus() const { return std::max(spec.milli_cpus, spec.milli_limit); }
  int whole_cpus() const { return static_cast<int>(spec.milli_cpus / 1000); }
  /// The numbers of exclusive CPUs that fit its request.
  std::set<int> own_counts() const;
};

/// A pod's containers in the order in which they start.
struct PodPlan {
  std::string name;
  std::string uid;
  StringMap labels;
  /// Whether kubelet reports its spec; else qrmd estimates, and kubelet may report it late.
  enum class Told { kNo, kLate, kFirst } told = Told::kNo;
  std::vector<PlannedContainer> containers;

  /// Nothing that could be scarce: no exclusive CPUs and none of its pool, no bound memory, no NIC.
  bool asks_nothing_special() const;
  bool is_pooled() const;
  // Of all its containers together, of which init containers run in turn.
  int own_cpus() const;
  int64_t bound_bytes() const;
  int nic_mbps() const;  ///< none where qrmd does not know of it
  /// The pod with `container` in place of all, as the makers of messages take it.
  PodSpec SpecFor(const PlannedContainer& container) const;
  /// As kubelet's Pods API reports it.
  std::string Message() const;
};

/// The kind of a drawn pod; kAny draws it.
enum class PodKind {
  kBestEffort,
  kBurstable,
  kFraction,  ///< Guaranteed, with a share of the default pool
  kStatic,    ///< Guaranteed, with exclusive CPUs
  kDatabase,  ///< exclusive CPUs and memory of one NUMA node
  kNic,
  kInit,     ///< an init container before one of kStatic
  kNicInit,  ///< an init container before one of kNic
  kSidecar,  ///< a sidecar before one of kDatabase
  kTwins,    ///< two containers with exclusive CPUs
  kPooled,   ///< in a pool whose size follows limits
};
inline constexpr int kPodKinds = 11;

PodPlan MakePlan(PodKind kind, const std::string& name, int serial, std::mt19937& random);

/// How many CPUs the pool that follows limits wants for these.
int PoolSizeFor(int64_t milli_limits);

/// A container that takes as much, to fill the node.
PodPlan MakeDatabase(const std::string& name, int serial, int cpus, int64_t bytes);
PodPlan MakeNicUser(const std::string& name, int serial, int mbps);

/// The exclusive CPUs that `container` of `plan` lacks, as a pod of its own.
PodPlan MakeGrowth(const PodPlan& plan, const PlannedContainer& container, int cpus);

/// Changes its request for CPUs to `cpus`; it may have the former or the new number.
void ResizeCpus(PlannedContainer& container, int cpus);
/// Its limit alone changes. Only for one that shares.
void ResizeLimit(PlannedContainer& container, int cpus);

}  // namespace qrm::test
