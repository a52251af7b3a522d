// The daemon's parts and how they are wired: none of them knows more of the others than its
// constructor takes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/base/clock.h"
#include "api/base/io_context.h"
#include "checkpoint/decision_log.h"
#include "checkpoint/store.h"
#include "manager/admission/admitter.h"
#include "manager/admission/dry_runs.h"
#include "manager/admission/releaser.h"
#include "manager/classes/class_book.h"
#include "manager/classes/class_keeper.h"
#include "manager/control/control_server.h"
#include "manager/daemon/config.h"
#include "manager/daemon/config_in_force.h"
#include "manager/daemon/config_trials.h"
#include "manager/daemon/early_parts.h"
#include "manager/daemon/housekeeping.h"
#include "manager/daemon/node_view.h"
#include "manager/daemon/process/stop_signals.h"
#include "manager/daemon/start_builtin.h"
#include "manager/kubelet/kubelet_specs.h"
#include "manager/kubelet/kubelet_watch.h"
#include "manager/observability/http_server.h"
#include "manager/page/page_server.h"
#include "manager/podresources/pod_resources_server.h"
#include "manager/pods/runtime_follower.h"
#include "manager/publish/publisher.h"
#include "manager/reconcile/reconciler.h"
#include "manager/registry/registry.h"
#include "manager/runtime/cgroup_reader.h"
#include "manager/runtime/cri/cri_client.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {

/// All parts, made and wired; who has them starts and stops them. They stand in the order in which
/// they are made: each uses what stands before it.
struct DaemonParts {
  /// `found` is the state as it was read, before it was made to fit `machine`.
  DaemonParts(std::unique_ptr<EarlyParts> given_early, checkpoint::OpenedStore opened,
              const checkpoint::NodeState& given_found, std::vector<BuiltinPlugin> given_builtins,
              ClassBook::Providers class_providers);
  ~DaemonParts() = default;
  DaemonParts(const DaemonParts&) = delete;
  DaemonParts& operator=(const DaemonParts&) = delete;

  const std::unique_ptr<EarlyParts> early;
  const Config& config = early->config;
  const Machine& machine = early->machine;
  const SystemClock clock;
  checkpoint::NodeState found;        // until the built-in plugins have it
  std::vector<std::string> warnings;  // written before the threads start
  bool rebuilding = false;            // the state was lost; written before the threads start

  IoLoop& loop = early->loop;
  boost::asio::io_context& io = loop.io();
  StopSignals stop_signals{io};

  Metrics& metrics = early->metrics;
  StateLoop state;
  LiveContainers live;
  checkpoint::DecisionLog decisions;
  KubeletWatch kubelet;
  const std::vector<BuiltinPlugin> builtins;
  LocalPlugins local_plugins;  // outlive every call of the registry
  Registry registry;
  CriClient cri;
  KubeletSpecs sources;
  const CgroupReader cgroups;
  ForeignWrites writes;
  DriftCheck drift;
  ClassBook class_book;
  ClassKeeper class_keeper;
  Releaser releaser;
  Admitter admitter;
  DryRuns dry_runs;
  Reconciler reconciler;
  RuntimeFollower follower;
  Housekeeping housekeeping;
  PodResourcesServer pod_resources;
  ConfigInForce in_force;
  ConfigTrials trials;
  Publisher publisher;
  NodeView node;
  ControlServer control;
  HttpServer http;
  PageServer page;

 private:
  ClassBook::Providers WithPluginTypes(ClassBook::Providers providers);
  bool IsOnNode(const std::string& pod_uid) const;
  void OnPluginRegistered(const std::string& resource);
  void OnAdmission(const AdmissionEvent& event);
  RegistryOptions RegistryOptionsOf();
  StateListeners ListenersOfState();
};

}  // namespace qrm::manager
