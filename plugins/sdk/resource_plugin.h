// For plugin authors: subclass ResourcePlugin, then RunPlugin serves it, registers it and keeps its
// state.
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

/// The SDK's durable record of one allocation.
struct Grant {
  ContainerRequest request;
  Shared<ResourceAllocation> allocation;
  /// Allocate's result, if a reconcile has changed the allocation since; null for most grants.
  std::shared_ptr<const ResourceAllocation> admitted;

  /// Compares `admitted` by value.
  bool operator==(const Grant& other) const;
};

/// All current grants of the plugin.
using Grants = std::map<ContainerKey, Grant>;

// NOLINTBEGIN(readability-redundant-member-init): see api/resource.h
/// A named pool of CPUs, for plugins that have pools.
struct Pool {
  std::string name{};
  CpuSet cpus{};
  std::vector<std::string> roles{};
  uint64_t containers = 0;
  CpuSet borrowed{};            ///< CPUs outside the pool that its containers also use
  std::string cpu_class{};      ///< how its CPUs are tuned; empty: not tuned
  std::string class_problem{};  ///< why the class is not in effect; empty: it is
};
// NOLINTEND(readability-redundant-member-init)

/// A resource plugin: subclass it, and hand it to RunPlugin. Only Allocate has to be written.
///
/// The SDK writes every allocation to disk before it answers the manager, answers a repeated
/// request from the record, and restores all allocations after a restart. After a reboot, the
/// manager restores them if it supports that. An exception from a function fails only that call;
/// the plugin continues.
///
/// Threads: the SDK calls the plugin from one thread, one call at a time; if AnswersAreQuick, also
/// from a second thread, but still one call at a time.
class ResourcePlugin {
 public:
  ResourcePlugin();
  virtual ~ResourcePlugin() = default;

  /// What the plugin wants from the manager; read once. The default asks for topology alignment and
  /// reconcile.
  virtual PluginOptions Options() const {
    return {.with_topology_alignment = true, .need_reconcile = true};
  }

  /// Whether Hints, HeldHints and Allocate only compute, for less than about 0.1 ms, without
  /// waiting for files or other processes. The SDK then calls them on the thread that receives
  /// calls. This saves two thread switches, but no other call is received meanwhile. Allocate is
  /// included only if the manager restores lost grants; otherwise it waits for the disk. Read once.
  virtual bool AnswersAreQuick() const { return false; }

  /// Replaces the plugin's state: `grants` are all current grants. Called at the start, before all
  /// other calls except LoadState; an error then ends the plugin. Called again when an allocation
  /// could not be written to disk, or when the manager restores allocations that the plugin lost.
  /// After an error, the plugin must then keep its state.
  virtual Status Restore(const Grants& /*grants*/) { return OkStatus(); }

  /// The NUMA nodes that could serve `request`; nothing is reserved. The default has no preference.
  /// Not called for a container whose grant already serves the request.
  virtual StatusOr<HintList> Hints(const ContainerRequest& /*request*/) {
    return HintList::NoPreference();
  }

  /// The hints for a container whose `grant` already serves the request. The default returns the
  /// nodes of the grant.
  virtual HintList HeldHints(const Grant& grant, const ContainerRequest& request);

  /// Reserves the resource for one container, within `hint` (empty nodes: anywhere). `request.hint`
  /// is the same hint, or absent for a plugin without alignment. An allocation without
  /// `oci_property` is recorded but changes nothing in the container. Called again for a container
  /// only if it requests more, or other nodes: the new allocation then replaces the previous one.
  /// Errors: the container is rejected with the message; its previous allocation stays.
  virtual StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request,
                                                const TopologyHint& hint) = 0;

  /// Frees the allocations of `keys`: the pod was removed, or the admission failed in another
  /// plugin.
  virtual void Remove(const std::vector<ContainerKey>& /*keys*/) {}

  /// The container is about to start: its process exists but has not run an instruction, and the
  /// runtime waits. Called only with the option `pre_start_required`, for containers with an
  /// allocation of this plugin. The default does nothing. Errors: the container does not start,
  /// with the message, and is retried.
  virtual Status PreStart(const ContainerKey& /*container*/) { return OkStatus(); }

  /// Returns the allocations that should change now; `grants` are the current ones. A container
  /// that is not in the result keeps its allocation. The default changes nothing. Changes are
  /// written to disk and reach the containers in the same reconcile.
  virtual StatusOr<std::map<ContainerKey, ResourceAllocation>> Reconcile(const Grants& /*grants*/) {
    return std::map<ContainerKey, ResourceAllocation>();
  }

  /// The node's allocatable amounts of this resource, for the pod-resources API. The default is
  /// none.
  virtual AllocatableResource Allocatable() const { return {}; }
  /// The same of resources that have no plugin of their own and that this one places, such as
  /// hugepages beside memory. The default is none.
  virtual AllocatableByResource AllocatableBeside() const { return {}; }

  /// Where the container's allocation is, with sockets, names and types, for the pod-resources API.
  /// The default has `amount_by_node`.
  virtual std::vector<PlacedQuantity> PlacesOf(const ContainerKey& container,
                                               const ResourceAllocation& allocation) const;

  /// The plugin's named pools; the default has no pools, and SetPools fails.
  virtual std::vector<Pool> Pools() const { return {}; }
  /// Replaces pools in one step, all or none; pools that are not in the map keep their CPUs. The
  /// SDK calls Reconcile next. Errors: kInvalidArgument, kUnimplemented without pools.
  virtual Status SetPools(const std::map<std::string, CpuSet>& cpus_by_pool);

  /// The plugin's own state besides its allocations, such as pool sizes. The SDK writes it to disk
  /// whenever Allocate, Remove, Reconcile or SetPools changed it.
  virtual std::string SaveState() const { return {}; }
  /// Restores the last SaveState, before Restore; not called if there is none. An error is logged,
  /// and the plugin starts without it.
  virtual Status LoadState(const std::string& /*state*/) { return OkStatus(); }

  /// The plugin's whole state as JSON, in the form of the QoS Resource Manager proposal.
  virtual std::string ExportState(const Grants& /*grants*/) const { return "{}"; }

  /// Begins the plugin's own work, such as setting values of the machine: the plugin serves from
  /// now on. Called after Restore, but not for a dry run. `state_dir`: a directory for the plugin's
  /// own files; empty: none.
  virtual void Begin(const std::string& /*state_dir*/) {}

  /// Ends the plugin's own work, such as watching: a plugin with a changed configuration has
  /// replaced it, and no further call follows.
  virtual void Retire() {}

  /// For plugins inside the manager: the plugin as it is, with all that is allocated, but without
  /// its own work. The manager tries pods with it. The default is none.
  virtual std::unique_ptr<ResourcePlugin> Fork() const { return nullptr; }

  /// Makes the manager call Reconcile now instead of at its next period. Call it when allocations
  /// should change without a call from the manager. Several calls may lead to one Reconcile.
  /// Threads: any; returns at once.
  void NotifyChanged();

  /// For the SDK: the signal that NotifyChanged raises.
  ChangeSignal& changes() { return *changes_; }

 private:
  std::shared_ptr<ChangeSignal> changes_;
};

// NOLINTBEGIN(readability-redundant-member-init): see api/resource.h
/// How to reach the manager and where to keep state. Every field has a flag of RunPlugin's command
/// line.
struct PluginSettings {
  std::string resource{};          ///< --resource: the name to register
  std::string registration_dir{};  ///< --registration-dir: Register on <dir>/kubelet.sock; the
                                   ///< plugin's socket is created there too
  std::string plugins_dir{};  ///< --plugins-registry-dir: the watched directory; exactly one of the
                              ///< two is set
  std::string state_dir{};    ///< --state-dir: the directory of the state database
  std::string socket_name{};  ///< --socket-name: default <resource>.sock with '/' as '_'
  /// --control-socket: the manager's socket for change notifications; empty: the manager sees
  /// changes at its next reconcile.
  std::string control_socket{};
};
// NOLINTEND(readability-redundant-member-init)

/// An extra flag of the plugin: `--name VALUE`, or `--name` without a value. One of the two
/// pointers is set.
struct ExtraFlag {
  std::string name;  ///< without the dashes
  std::string help;
  std::string* value = nullptr;  ///< contains the default, and gets the flag's value
  bool* present = nullptr;       ///< becomes true if the flag is given; it takes no value
};

/// Reads the flags above and `extra` from the command line; `--help` prints them and exits. Other
/// flags are errors. Defaults: the watched directory /var/lib/qrm/plugins_registry, state in
/// /var/lib/qrm/state. Errors: kInvalidArgument with the remedy.
StatusOr<PluginSettings> ParseSettings(const std::string& default_resource, int argc, char** argv,
                                       const std::vector<ExtraFlag>& extra = {});

/// Serves and registers `plugin` until SIGTERM or SIGINT; registers again whenever the manager
/// restarts. Returns OK after a signal, else the error that ended it.
Status RunPlugin(const PluginSettings& settings, ResourcePlugin& plugin);

/// All of a plugin's main: ParseSettings, RunPlugin, and the log line when either fails. Returns
/// the exit code: 0 after a signal, 1 after an error, 2 for a wrong command line.
int PluginMain(const std::string& default_resource, ResourcePlugin& plugin, int argc, char** argv);

/// An allocation that pins CPUs ("CpusetCpus"); its quantity is their number.
ResourceAllocation PinCpus(const CpuSet& cpus);
/// An allocation of `bytes` on the memory nodes `nodes` ("CpusetMems").
ResourceAllocation PinMemory(const NumaMask& nodes, uint64_t bytes);

/// This machine's NUMA nodes, for hints: the manager rejects a hint with any other node. Node 0 on
/// a kernel without NUMA. Units: ids as in /sys/devices/system/node/online below `sysfs_root`.
/// Source: Linux Documentation/ABI/stable/sysfs-devices-node.
NumaMask OnlineNumaNodes(const std::string& sysfs_root = "/sys");

}  // namespace qrm::sdk
