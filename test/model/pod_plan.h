// The pods that the model test makes, and what each of their containers may expect.
#pragma once

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
  /// The number of exclusive CPUs: two numbers while it is resized; none: it shares.
  std::set<int> own_cpus;
  int64_t bound_bytes = 0;  ///< of one NUMA node
  uint32_t attempt = 0;     ///< restarts so far
};

/// A pod's containers in the order in which they start.
struct PodPlan {
  std::string name;
  std::string uid;
  StringMap labels;
  bool told = false;  ///< kubelet reports its spec; else qrmd estimates
  std::vector<PlannedContainer> containers;

  /// Nothing that could be scarce: no exclusive CPUs, no bound memory, no NIC.
  bool asks_nothing_special() const;
  int own_cpus() const;         ///< of all its containers together
  int64_t bound_bytes() const;  ///< likewise
  int nic_mbps() const;
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
  kSidecar,  ///< a sidecar before one of kDatabase
  kTwins,    ///< two containers with exclusive CPUs
};
inline constexpr int kPodKinds = 9;

PodPlan MakePlan(PodKind kind, const std::string& name, int serial, std::mt19937& random);

/// A container that takes as much, to fill the node.
PodPlan MakeDatabase(const std::string& name, int serial, int cpus, int64_t bytes);
PodPlan MakeNicUser(const std::string& name, int serial, int mbps);

/// Changes its request for CPUs to `cpus`; it may have the former or the new number.
void ResizeCpus(PlannedContainer& container, int cpus);

}  // namespace qrm::test
