// The daemon's parts and their wiring. A part knows other parts only by its constructor's
// arguments.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/io_context.h"
#include "checkpoint/node_state.h"
#include "manager/classes/class_book.h"
#include "manager/control/control_server.h"
#include "manager/control/page_server.h"
#include "manager/daemon/builtin_plugins.h"
#include "manager/daemon/housekeeping.h"
#include "manager/daemon/io_loop.h"
#include "manager/daemon/node_checks.h"
#include "manager/daemon/process/stop_signals.h"
#include "manager/kubelet/kubelet_policy.h"
#include "manager/observability/http_server.h"
#include "manager/reconcile/drift.h"
#include "manager/reconcile/foreign_writes.h"
#include "manager/runtime/cgroup_cpusets.h"
#include "manager/runtime/cri/cri_client.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_lock.h"
#include "manager/state/state_loop.h"
#include "topology/machine.h"

namespace qrm::checkpoint {
class DecisionLog;
struct NodeEvent;
struct OpenedStore;
}  // namespace qrm::checkpoint

namespace qrm::manager {

struct AdmissionEvent;
class Admitter;
class ClassKeeper;
struct Config;
struct ConfigSource;
class DryRuns;
class KubeletSpecs;
class LiveConfig;
struct Metrics;
class NodeView;
class PodResourcesServer;
class Publisher;
class ReasonLog;
class Reconciler;
class Registry;
struct RegistryOptions;
class Releaser;
class RuntimeFollower;

/// All parts, created and wired; the derived class starts and stops them. Members are declared in
/// the order of construction: each part uses the parts before it.
struct DaemonParts : protected Chores {
  /// `given_found` is the state as read from disk, before it was repaired to fit `given_machine`.
  DaemonParts(std::unique_ptr<const Config> given_config, Machine given_machine,
              StateLock given_lock, checkpoint::OpenedStore opened,
              const checkpoint::NodeState& given_found, std::vector<BuiltinPlugin> given_builtins,
              ClassBook::Providers class_providers, Config as_read, ConfigSource source);
  ~DaemonParts() override;
  DaemonParts(const DaemonParts&) = delete;
  DaemonParts& operator=(const DaemonParts&) = delete;

  const std::unique_ptr<const Config> read_config;
  const Config& config = *read_config;
  const Machine machine;
  const StateLock lock;
  const SystemClock clock;
  checkpoint::NodeState found;        // moved from when the built-in plugins start
  std::vector<std::string> warnings;  // written before the threads start
  bool rebuilding = false;            // the state was lost; written before the threads start

  IoLoop loop;
  boost::asio::io_context& io = loop.io();
  StopSignals stop_signals{io};

  const std::unique_ptr<Metrics> owned_metrics;
  Metrics& metrics = *owned_metrics;
  StateLoop state;
  LiveContainers live;
  const std::unique_ptr<checkpoint::DecisionLog> decisions;
  KubeletWatch kubelet;
  const std::vector<BuiltinPlugin> builtins;
  LocalPlugins local_plugins;  // outlive every call of the registry
  const std::unique_ptr<Registry> registry;
  CriClient cri;
  const std::unique_ptr<KubeletSpecs> sources;
  const CgroupReader cgroups;
  ForeignWrites writes;
  DriftCheck drift;
  ClassBook class_book;
  const std::unique_ptr<ClassKeeper> class_keeper;
  const std::unique_ptr<Releaser> releaser;
  const std::unique_ptr<Admitter> admitter;
  const std::unique_ptr<DryRuns> dry_runs;
  const std::unique_ptr<Reconciler> reconciler;
  const std::unique_ptr<RuntimeFollower> follower;
  NodeChecks checks;
  const std::unique_ptr<ReasonLog> reasons;  // used on the I/O loop
  Housekeeping housekeeping;
  const std::unique_ptr<PodResourcesServer> pod_resources;
  const std::unique_ptr<LiveConfig> live_config;
  const std::unique_ptr<Publisher> publisher;
  const std::unique_ptr<NodeView> node;
  ControlServer control;
  HttpServer http;
  PageServer page;

  /// Keeps `event`, with the name of its pod as far as the pod is on record. Threads: any.
  void NoteEvent(checkpoint::NodeEvent event);

 private:
  ClassBook::Providers WithOtherTypes(ClassBook::Providers providers);
  bool IsOnNode(const std::string& pod_uid) const;
  bool StandsAside() const;
  void OnPluginRegistered(const std::string& resource);
  void OnAdmission(const AdmissionEvent& event);
  void OnDrift(const ForeignWrite& write);
  void OnPluginChanged(const std::string& resource, const std::string& what);
  RegistryOptions RegistryOptionsOf();
  StateListeners ListenersOfState();
  void LookForFaults() override;
};

}  // namespace qrm::manager
