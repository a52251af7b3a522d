// What a plugin author sees: subclass ResourcePlugin, then RunPlugin serves it, registers it and
// keeps its state.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"

namespace qrm::sdk {

class ChangeSignal;

/// What the SDK remembers of each allocation, durably.
struct Grant {
  ContainerRequest request;
  Shared<ResourceAllocation> allocation;
  /// What Allocate gave, where a reconcile changed it since; null for most grants.
  std::shared_ptr<const ResourceAllocation> admitted;

  /// Compares what `admitted` says.
  bool operator==(const Grant& other) const;
};

/// Everything the plugin has given and not taken back.
using Grants = std::map<ContainerKey, Grant>;

/// A pool of CPUs by name, for plugins that have pools.
struct Pool {
  std::string name;
  CpuSet cpus;
  std::vector<std::string> roles;
  uint64_t containers = 0;
  CpuSet borrowed;            ///< CPUs that its containers use, too, though they are not its own
  std::string cpu_class;      ///< how its CPUs are tuned; empty: as the machine has them
  std::string class_problem;  ///< why they are not so now; empty: they are
};

/// A resource plugin: subclass it, and hand it to RunPlugin. Only Allocate has to be written.
///
/// The SDK writes every allocation before the manager hears of it, answers a repeated request from
/// there, and gives everything back after a restart, or what a manager teaches after one of the
/// machine. An exception that leaves a function rejects that one call; the plugin lives on.
///
/// Threads: the SDK calls the plugin from one thread, one call at a time; a plugin whose
/// AnswersAreQuick is asked from another one too, one call at a time all the same.
class ResourcePlugin {
 public:
  ResourcePlugin();
  virtual ~ResourcePlugin() = default;

  /// What the plugin asks of the manager, read once; the default aligns with topology and takes
  /// part in reconcile.
  virtual PluginOptions Options() const {
    return {.with_topology_alignment = true, .need_reconcile = true};
  }

  /// Whether Hints, HeldHints and Allocate only compute, for less than about 0.1 ms, and wait for
  /// no file and no answer: the SDK then has the thread ask them that receives calls, which saves
  /// two changes of threads, and hears of no other call meanwhile; Allocate only for a manager that
  /// teaches, since what it gives waits for the disk else. Read once.
  virtual bool AnswersAreQuick() const { return false; }

  /// What is held is `grants` and nothing else, whatever the plugin had in mind before. Called
  /// before any other call but LoadState, with what was allocated before a restart, where an error
  /// ends the plugin; and again when an allocation could not be kept on disk, or when the manager
  /// knows of allocations that the plugin lost, where an error means that all stays as it was.
  virtual Status Restore(const Grants& grants);

  /// The NUMA nodes that could serve `request`; nothing is reserved. The default has no preference.
  /// Not asked about a container whose grant already serves the request.
  virtual StatusOr<HintList> Hints(const ContainerRequest& request);

  /// The same for a container whose `grant` already serves the request. The default answers with
  /// the nodes of the grant.
  virtual HintList HeldHints(const Grant& grant, const ContainerRequest& request);

  /// Reserves the resource for one container, within `hint` (empty nodes: anywhere). `request.hint`
  /// is the same hint, or absent for a plugin without alignment. An allocation without
  /// `oci_property` is recorded but sets no knob. Called again for a container only when it now
  /// asks for more, or for other nodes: the new allocation then replaces the former.
  /// Errors: reject the container with the message; what the container held before stays.
  virtual StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request,
                                                const TopologyHint& hint) = 0;

  /// The containers in `keys` are gone: their pod was removed, or their admission failed elsewhere.
  virtual void Remove(const std::vector<ContainerKey>& keys);

  /// The container is about to start: its process exists and has run no instruction, and the
  /// runtime waits. Asked only of plugins with `pre_start_required`, about containers that they
  /// gave something. The default has nothing to do. Errors: the container does not start, with the
  /// message, and is tried again.
  virtual Status PreStart(const ContainerKey& container);

  /// The allocations that should change now; `grants` is what was given so far, and a container
  /// that is left out keeps what it has. The default changes nothing. Changes are kept on disk and
  /// reach the containers in the same reconcile.
  virtual StatusOr<std::map<ContainerKey, ResourceAllocation>> Reconcile(const Grants& grants);

  /// What the node offers of this resource, for the pod-resources API. The default offers nothing.
  virtual AllocatableResource Allocatable() const;

  /// The plugin's named pools; a plugin without pools returns none and refuses to set any.
  virtual std::vector<Pool> Pools() const;
  /// Replaces pools in one step, all or none; pools that are not named keep their CPUs. The SDK
  /// calls Reconcile next. Errors: kInvalidArgument, kUnimplemented without pools.
  virtual Status SetPools(const std::map<std::string, CpuSet>& cpus_by_pool);

  /// State of the plugin's own beside its allocations (pool sizes, ...), kept on disk by the SDK
  /// whenever Allocate, Remove, Reconcile or SetPools changed it.
  virtual std::string SaveState() const;
  /// Gives back what SaveState returned, before Restore; not called when there is nothing.
  /// An error is logged and the plugin starts without.
  virtual Status LoadState(const std::string& state);

  /// The plugin's whole state as JSON, in the form of the QoS Resource Manager proposal.
  virtual std::string ExportState(const Grants& grants) const;

  /// Begins what the plugin does on its own, such as setting values of the machine: it serves from
  /// now on. Not called for one that is only asked what it would do. `state_dir`: where it may keep
  /// files of its own; empty: nowhere. Called after Restore.
  virtual void Begin(const std::string& state_dir);

  /// Ends what the plugin does on its own, such as watching: another one, with a changed
  /// configuration, is in its place, and nobody calls it any more.
  virtual void Retire() {}

  /// Makes the manager ask Reconcile now instead of at its next period: call it when allocations
  /// should change without a call of the manager. Several calls may lead to one question. Threads:
  /// any; returns at once.
  void NotifyChanged();

  /// Who hears of NotifyChanged; the SDK's part.
  ChangeSignal& changes() { return *changes_; }

 private:
  std::shared_ptr<ChangeSignal> changes_;
};

/// How to reach the manager and where to keep state. Every field has a flag of RunPlugin's command
/// line.
struct PluginSettings {
  std::string resource;          ///< --resource: the name to register
  std::string registration_dir;  ///< --registration-dir: Register on <dir>/kubelet.sock; the
                                 ///< plugin's socket is made there too
  std::string plugins_dir;  ///< --plugins-registry-dir: the watched directory; exactly one of the
                            ///< two is set
  std::string state_dir;    ///< --state-dir: where the state database lives
  std::string socket_name;  ///< --socket-name: default <resource>.sock with '/' as '_'
  /// --control-socket: where the manager is told of changes; empty: it sees them at its next
  /// reconcile.
  std::string control_socket;
};

/// A flag of the plugin's own: `--name VALUE`, or `--name` alone. One of the two pointers is set.
struct ExtraFlag {
  std::string name;  ///< without the dashes
  std::string help;
  std::string* value = nullptr;  ///< holds the default, and gets what was typed
  bool* present = nullptr;       ///< becomes true when the flag was typed; it takes no value
};

/// Reads the flags above and `extra` from the command line; `--help` prints them and ends the
/// program. Other flags are refused. Defaults: the watched directory /var/lib/qrm/plugins_registry,
/// state in /var/lib/qrm/state. Errors: kInvalidArgument with what to type.
StatusOr<PluginSettings> ParseSettings(const std::string& default_resource, int argc, char** argv,
                                       const std::vector<ExtraFlag>& extra = {});

/// Serves and registers `plugin` until SIGTERM or SIGINT; registers again whenever the manager
/// restarts. Errors: what ended it, in one sentence; OK after a signal.
Status RunPlugin(const PluginSettings& settings, ResourcePlugin& plugin);

/// All of a plugin's main: ParseSettings, RunPlugin, and the log line when either fails. Returns
/// the exit code: 0 after a signal, 1 for what ended the plugin, 2 for a mistyped command line.
int PluginMain(const std::string& default_resource, ResourcePlugin& plugin, int argc, char** argv);

/// An allocation that pins CPUs ("CpusetCpus"); its quantity is their number.
ResourceAllocation PinCpus(const CpuSet& cpus);
/// An allocation of `bytes` on the memory nodes `nodes` ("CpusetMems").
ResourceAllocation PinMemory(const NumaMask& nodes, uint64_t bytes);

/// This machine's NUMA nodes, for hints: one that names another node is refused by the manager.
/// Node 0 on a kernel without NUMA. Units: ids as in /sys/devices/system/node/online below
/// `sysfs_root`. Source: Linux Documentation/ABI/stable/sysfs-devices-node.
NumaMask OnlineNumaNodes(const std::string& sysfs_root = "/sys");

}  // namespace qrm::sdk
