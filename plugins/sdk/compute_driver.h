// For authors of a compute driver: subclass ComputeDriver, then DriverMain serves it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/id_set.h"
#include "api/resource.h"

namespace qrm::sdk {

struct PluginSettings;

// NOLINTBEGIN(readability-redundant-member-init): see api/resource.h
/// A NUMA node with memory.
struct MemoryNode {
  int node = 0;
  std::string kind{};  ///< "dram", "hbm", "pmem", "cxl", "gpu" or "cpu-less"
  uint64_t bytes = 0;
  /// To which no container is bound; the memory plugin may keep some of them for the system.
  uint64_t free_bytes = 0;

  bool operator==(const MemoryNode&) const = default;
};

/// A container's request to a driver.
struct ComputeRequest {
  std::string resource{};  ///< the driver, as DriverResource names it
  ContainerKey key{};
  std::string pod_namespace{};
  std::string pod_name{};
  ContainerType type = ContainerType::kMain;
  std::string spec{};       ///< from the pod, or from the node's configuration
  CpuSet available{};       ///< the driver may choose only from these
  CpuSet shared{};          ///< the CPUs of containers without exclusive CPUs
  CpuSet reserved{};        ///< for the system
  CpuSet current{};         ///< exclusive CPUs of a container that is resized; empty: it is new
  TopologyHint hint{};      ///< what suits the container's other resources; empty: any node
  int64_t milli_cpus = 0;   ///< requested; the driver may not give more whole CPUs
  StringMap annotations{};  ///< of the pod
  StringMap labels{};
  /// All that the container requests, and its limits: CPUs in CPUs, memory and hugepages in bytes.
  std::map<std::string, double> requests{};
  std::map<std::string, double> limits{};
  std::string qos_class{};  ///< "Guaranteed", "Burstable" or "BestEffort"
  std::string runtime_class{};
  /// Extended resource, or "claim NAME: DRIVER/POOL/DEVICE" -> the NUMA nodes of the container's
  /// devices.
  std::map<std::string, NumaMask> device_nodes{};
  std::vector<MemoryNode> memory_nodes{};  ///< the driver may choose among them

  bool operator==(const ComputeRequest&) const = default;
};

/// CPUs of one kind that a container gets exclusively, or shares with other containers.
struct ComputePart {
  CpuSet cpus{};
  std::string name{};  ///< chosen by the driver
  CpuSet idle{};       ///< kept idle: no container runs there, this one included
  /// The CPUs stay in the default pool. The container uses them in addition to its exclusive CPUs
  /// for as long as they are in the pool. An empty set means the whole pool, also when it changes.
  bool shared = false;

  bool operator==(const ComputePart&) const = default;
};

/// A preference that is not met, although the container is admitted.
struct UnmetWish {
  std::string token{};
  std::string reason{};

  bool operator==(const UnmetWish&) const = default;
};

/// A driver's allocation for one container: exclusive CPUs, CPUs that it shares beside them, or the
/// whole pool alone.
struct ComputeGrant {
  std::vector<ComputePart> parts{};
  /// The memory plugin takes the container's memory and hugepages there, or the container is
  /// rejected. Empty: the memory plugin decides.
  NumaMask mems{};
  StringMap envs{};
  StringMap annotations{};
  std::vector<UnmetWish> unmet{};
  std::vector<std::string> warnings{};  ///< about the spec, for the pod's events

  CpuSet Cpus() const;  ///< exclusive CPUs of all parts
  CpuSet Idle() const;
  bool shares() const;                        ///< whether it also uses CPUs of the default pool
  CpuSet SharedOf(const CpuSet& pool) const;  ///< the CPUs in `pool` that it may use

  bool operator==(const ComputeGrant&) const = default;
};

/// All current grants of a driver.
using ComputeGrants = std::map<ContainerKey, ComputeGrant>;

/// A container that is about to run its first instruction.
struct ComputeInstance {
  std::string resource{};  ///< the driver
  ContainerKey key{};
  SharedText pod_namespace{};
  SharedText pod_name{};
  SharedText container_id{};  ///< the runtime's
  std::string cgroup{};       ///< below the root of each hierarchy: "/kubepods/pod1/c1"
  CpuSet cpus{};

  bool operator==(const ComputeInstance&) const = default;
};

/// An allocation that has ended.
struct ComputeRemoval {
  std::string resource{};  ///< the driver
  ContainerKey key{};      ///< without a container: all containers of the pod
  std::string container_id{};

  bool operator==(const ComputeRemoval&) const = default;
};
// NOLINTEND(readability-redundant-member-init)

/// A compute driver: subclass it, and hand it to DriverMain. Only Admit has to be written.
///
///   class RoundRobin final : public qrm::sdk::ComputeDriver { ... };
///   int main(int argc, char** argv) {
///     RoundRobin driver;
///     return qrm::sdk::DriverMain("round-robin", driver, argc, argv);
///   }
///
/// The SDK writes every grant to disk before it answers the manager, answers a repeated request
/// from the recorded grant, and restores all grants after a restart. An exception from a function
/// fails only that call; the driver continues.
///
/// Threads: the SDK calls the driver from one thread, one call at a time. By default, the manager
/// waits for each call at most half a second.
class ComputeDriver {
 public:
  virtual ~ComputeDriver() = default;

  /// Whether Add is called; read once.
  virtual bool NeedsAdd() const { return true; }

  /// Replaces the driver's state: `grants` are all current grants. Called once before any other
  /// call, and again when a grant could not be written to disk, or was replaced. Errors: the driver
  /// does not start.
  virtual Status Restore(const ComputeGrants& /*grants*/) { return OkStatus(); }

  /// Whether Hints is called; read once. Else the manager derives hints from the available CPUs.
  virtual bool GivesHints() const { return false; }

  /// The NUMA nodes that could serve `request`, whose `hint` is not decided yet; nothing is
  /// allocated. Errors: the container is rejected with the message.
  virtual StatusOr<HintList> Hints(const ComputeRequest& /*request*/) {
    return HintList::NoPreference();
  }

  /// Chooses CPUs from `request.available` for one container. Errors: the container is rejected
  /// with the message.
  virtual StatusOr<ComputeGrant> Admit(const ComputeRequest& request) = 0;

  /// Whether Resize is called; read once. Add is called then, too.
  virtual bool Resizes() const { return false; }

  /// Chooses the CPUs of a container that has `now`: it is resized to `request`, or the driver
  /// called RequestChanges. The result replaces `now` once Add is called with its CPUs, after a
  /// Restore with it; until then, and for good if that does not happen, the container has `now`.
  /// Errors: the container keeps `now`; a resize is pending with the message, and is retried.
  virtual StatusOr<ComputeGrant> Resize(const ComputeRequest& request, const ComputeGrant& now);

  /// The container is about to start, and the runtime waits. Also called when the container
  /// restarts in place. Errors: the container does not start, with the message, and is retried.
  virtual Status Add(const ComputeInstance& /*instance*/) { return OkStatus(); }

  /// The container's allocation has ended, whether it ever ran or not. Errors: the container keeps
  /// its CPUs, and this is called again.
  virtual Status Remove(const ContainerKey& /*key*/) { return OkStatus(); }

  /// Makes the manager ask for Resize of each running container of this driver, at most once a
  /// second, to give it fewer CPUs, or more up to its request. Needs Resizes, and the manager's
  /// control socket. Threads: any; returns at once.
  void RequestChanges() const;

 private:
  friend class ComputePlugin;
  std::function<void()> request_changes_;  ///< set before the driver is served
};

/// All of a driver's main: command line, socket, registration, signals and state. `name` is a DNS
/// label. Returns the exit code: 0 after a signal, 1 after an error, 2 for a wrong command line.
int DriverMain(const std::string& name, ComputeDriver& driver, int argc, char** argv);
/// The same for a driver with flags of its own, which calls ParseSettings of
/// plugins/sdk/resource_plugin.h itself.
int DriverMain(const PluginSettings& settings, ComputeDriver& driver);

/// The resource name of the driver `name`: "cci.qrm.io/NAME".
std::string DriverResource(std::string_view name);
/// Whether `resource` names a driver, not a resource plugin's resource.
bool IsDriverResource(std::string_view resource);
/// The name of the driver in `resource`; empty if `resource` does not name a driver.
std::string_view DriverNameOf(std::string_view resource);
/// OK for a DNS label: up to 63 lower-case letters, digits and '-', beginning and ending with a
/// letter or digit. Errors: kInvalidArgument with this rule.
Status CheckDriverName(std::string_view name);

}  // namespace qrm::sdk
