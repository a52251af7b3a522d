// What the author of a compute driver sees: subclass ComputeDriver, then DriverMain serves it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/id_set.h"
#include "api/resource.h"

namespace qrm::sdk {

/// What a container asks of a driver.
struct ComputeRequest {
  std::string resource;  ///< the driver, as DriverResource names it
  ContainerKey key;
  std::string pod_namespace;
  std::string pod_name;
  ContainerType type = ContainerType::kMain;
  std::string spec;        ///< as the pod or the node's configuration says it
  CpuSet available;        ///< the driver may choose from these and no others
  CpuSet shared;           ///< where containers run that have no CPUs of their own
  CpuSet reserved;         ///< of the system
  TopologyHint hint;       ///< what suits the container's other resources; no nodes: any
  int64_t milli_cpus = 0;  ///< requested: no more whole CPUs may be given
  StringMap annotations;   ///< of the pod
  StringMap labels;

  bool operator==(const ComputeRequest&) const = default;
};

/// CPUs of one kind that a container is given for itself, or may use beside others.
struct ComputePart {
  CpuSet cpus;
  std::string name;  ///< the driver's own
  CpuSet idle;       ///< nobody runs there, nor does the container
  /// The CPUs stay in the default pool: the container uses them beside its own for as long as they
  /// are there. No CPUs are all of the pool, whichever these are.
  bool shared = false;

  bool operator==(const ComputePart&) const = default;
};

/// A wish that is not met, although the container is admitted.
struct UnmetWish {
  std::string token;
  std::string reason;

  bool operator==(const UnmetWish&) const = default;
};

/// What a driver gives one container. At least one CPU is the container's own.
struct ComputeGrant {
  std::vector<ComputePart> parts;
  NumaMask mems;  ///< none: those of the memory plugin
  StringMap envs;
  StringMap annotations;
  std::vector<UnmetWish> unmet;

  CpuSet Cpus() const;  ///< its own, of all parts
  CpuSet Idle() const;
  bool shares() const;                        ///< whether it uses CPUs of the default pool, too
  CpuSet SharedOf(const CpuSet& pool) const;  ///< those of `pool` that it may use

  bool operator==(const ComputeGrant&) const = default;
};

/// All that a driver has given and not taken back.
using ComputeGrants = std::map<ContainerKey, ComputeGrant>;

/// A container that is about to run its first instruction.
struct ComputeInstance {
  std::string resource;  ///< the driver
  ContainerKey key;
  SharedText pod_namespace;
  SharedText pod_name;
  SharedText container_id;  ///< the runtime's
  std::string cgroup;       ///< below the root of each hierarchy: "/kubepods/pod1/c1"
  CpuSet cpus;

  bool operator==(const ComputeInstance&) const = default;
};

/// A reservation that has ended.
struct ComputeRemoval {
  std::string resource;  ///< the driver
  ContainerKey key;      ///< without a container: all that the pod has
  std::string container_id;

  bool operator==(const ComputeRemoval&) const = default;
};

/// A compute driver: subclass it, and hand it to DriverMain. Only Admit has to be written.
///
///   class RoundRobin final : public qrm::sdk::ComputeDriver { ... };
///   int main(int argc, char** argv) {
///     RoundRobin driver;
///     return qrm::sdk::DriverMain("round-robin", driver, argc, argv);
///   }
///
/// The SDK keeps every grant on disk before the manager hears of it, answers a repeated request
/// from there, and gives everything back after a restart. An exception that leaves a function fails
/// that one call; the driver lives on.
///
/// Threads: the SDK calls the driver from one thread, one call at a time. The manager waits for
/// each at most half a second, unless it is configured otherwise.
class ComputeDriver {
 public:
  virtual ~ComputeDriver() = default;

  /// Whether Add is to be called at all; read once.
  virtual bool NeedsAdd() const { return true; }

  /// What is held is `grants` and nothing else: called once before any other call, and again when a
  /// grant could not be kept. Errors: the driver does not start.
  virtual Status Restore(const ComputeGrants& grants);

  /// CPUs of `request.available` for one container. Errors: refuse it with the message.
  virtual StatusOr<ComputeGrant> Admit(const ComputeRequest& request) = 0;

  /// The container is about to start, and the runtime waits. Also called when it is started anew in
  /// place. Errors: it does not start, with the message, and is tried again.
  virtual Status Add(const ComputeInstance& instance);

  /// The container's reservation has ended, whether it ever ran or not. Errors: it keeps its CPUs,
  /// and this is called again.
  virtual Status Remove(const ContainerKey& key);
};

/// All of a driver's main: command line, socket, registration, signals and state. `name` is a DNS
/// label. Returns the exit code: 0 after a signal, 1 for what ended it, 2 for a mistyped command
/// line.
int DriverMain(const std::string& name, ComputeDriver& driver, int argc, char** argv);

/// What the driver `name` is called among the node's resources: "cci.qrm.io/NAME".
std::string DriverResource(std::string_view name);
/// Whether `resource` is a driver, and not what a resource plugin serves.
bool IsDriverResource(std::string_view resource);
/// The driver that `resource` is; empty when it is none.
std::string_view DriverNameOf(std::string_view resource);
/// OK for a DNS label: up to 63 lower-case letters, digits and '-', none of them at an end. Errors:
/// kInvalidArgument with the form.
Status CheckDriverName(std::string_view name);

}  // namespace qrm::sdk
