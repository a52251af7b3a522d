// Wires the daemon's parts; none of them knows more of the others than its constructor takes.
#include "manager/daemon/daemon.h"

#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include "api/base/clock.h"
#include "api/base/log.h"
#include "checkpoint/store.h"
#include "manager/admission/admitter.h"
#include "manager/admission/dry_runs.h"
#include "manager/admission/releaser.h"
#include "manager/admission/teach_plugin.h"
#include "manager/control/control_server.h"
#include "manager/daemon/directories.h"
#include "manager/daemon/housekeeping.h"
#include "manager/daemon/io_loop.h"
#include "manager/daemon/metered_store.h"
#include "manager/daemon/node_view.h"
#include "manager/daemon/realtime.h"
#include "manager/daemon/start_builtin.h"
#include "manager/daemon/stop_signals.h"
#include "manager/kubelet/kubelet_specs.h"
#include "manager/kubelet/kubelet_watch.h"
#include "manager/observability/http_server.h"
#include "manager/observability/metrics.h"
#include "manager/podresources/pod_resources_server.h"
#include "manager/pods/runtime_follower.h"
#include "manager/reconcile/reconciler.h"
#include "manager/registry/registry.h"
#include "manager/runtime/cgroup_reader.h"
#include "manager/runtime/cri/cri_client.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/found_state.h"
#include "manager/state/state_lock.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {

// Members stand in the order in which they are made: each uses what stands before it.
struct Daemon::Impl {
  Impl(Config given_config, Machine given_machine, StateLock given_lock,
       checkpoint::OpenedStore opened, std::vector<BuiltinPlugin> given_builtins);
  // NOLINTNEXTLINE(bugprone-exception-escape): a loop that cannot be joined ends the program.
  ~Impl() { Stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status Start();
  Status StartEdges();
  void StartPlugins();
  void RunInRealTime();
  void Stop();

  void OnPluginRegistered(const std::string& resource);
  RegistryOptions RegistryOptionsOf();
  StateListeners ListenersOfState();

  const Config config;
  const Machine machine;
  const SystemClock clock;
  const StateLock lock;
  checkpoint::NodeState found;        // until the built-in plugins have it
  std::vector<std::string> warnings;  // written before the threads start
  bool rebuilding = false;            // the state was lost; written before the threads start

  IoLoop loop;
  boost::asio::io_context& io = loop.io();
  StopSignals stop_signals{io};

  Metrics metrics;
  StateLoop state;
  LiveContainers live;
  KubeletWatch kubelet;
  const std::vector<BuiltinPlugin> builtins;
  LocalPlugins local_plugins;  // outlive every call of the registry
  Registry registry;
  CriClient cri;
  KubeletSpecs sources;
  const CgroupReader cgroups;
  ForeignWrites writes;
  DriftCheck drift;
  Releaser releaser;
  Admitter admitter;
  DryRuns dry_runs;
  Reconciler reconciler;
  RuntimeFollower follower;
  Housekeeping housekeeping;
  PodResourcesServer pod_resources;
  NodeView node;
  ControlServer control;
  HttpServer http;

  bool running = false;
};

Daemon::Impl::Impl(Config given_config, Machine given_machine, StateLock given_lock,
                   checkpoint::OpenedStore opened, std::vector<BuiltinPlugin> given_builtins)
    : config(std::move(given_config)),
      machine(std::move(given_machine)),
      lock(std::move(given_lock)),
      warnings(machine.parts().warnings),
      state(MeterStore(std::move(opened), metrics.store), ListenersOfState()),
      kubelet(config.kubelet.state_dir),
      builtins(std::move(given_builtins)),
      registry(io, RegistryOptionsOf()),
      cri(io, config.runtime.cri),
      sources({.io = io,
               .machine = machine,
               .on_pod_gone = [this](const std::string& uid) { follower.OnPodGone(uid); }},
              config.kubelet, config.pod_keys),
      cgroups(config.runtime.cgroup_root),
      drift({.read = [this](const std::string& path) { return cgroups.ReadByPath(path); },
             .live = live,
             .writes = writes}),
      releaser(state, registry.plugins(), config.admission),
      admitter(
          {.state = state,
           .plugins = registry.plugins(),
           .releaser = releaser,
           .machine = machine,
           .clock = clock,
           .listener = [this](const AdmissionEvent& event) { metrics.admission.Record(event); }},
          config.admission),
      dry_runs({.plugins = registry.plugins(),
                .machine = machine,
                .clock = clock,
                .conflicts = [this] { return kubelet.conflicts(); },
                .specs_from = [this] { return sources.specs_from(); }},
               config.admission, config.pod_keys),
      reconciler({.io = io,
                  .state = state,
                  .plugins = registry.plugins(),
                  .runtime = cri,
                  .live = live,
                  .machine = machine,
                  .drift = drift,
                  .on_answer = [this](const std::string& plugin) { releaser.Replay(plugin); },
                  .stands_aside = [this] { return kubelet.stands_aside(); },
                  .admission = config.admission},
                 config.reconcile),
      follower({.io = io,
                .state = state,
                .plugins = registry.plugins(),
                .source = sources.source(),
                .admitter = admitter,
                .releaser = releaser,
                .reconciler = reconciler,
                .runtime = cri,
                .live = live,
                .writes = writes,
                .machine = machine,
                .read_cpuset = [this](const std::string& path) { return cgroups.ReadByPath(path); },
                .stands_aside = [this] { return kubelet.stands_aside(); }},
               {.nri = config.runtime.nri,
                .pods = config.pods,
                .period = config.reconcile.period,
                .admission_deadline = config.admission.deadline,
                .on_nri_answer = [this](const NriAnswer& answer) { metrics.nri.Record(answer); }}),
      housekeeping({io, kubelet, follower, reconciler}),
      pod_resources(
          state, registry.plugins(), machine, metrics.pod_resources,
          [this] { return !rebuilding || live.synchronized(); }, config.pod_resources),
      node({.state = state,
            .plugins = registry.plugins(),
            .follower = follower,
            .reconciler = reconciler,
            .admitter = admitter,
            .dry_runs = dry_runs,
            .pod_resources = pod_resources,
            .live = live,
            .writes = writes,
            .kubelet = kubelet,
            .warnings = warnings,
            .config = config}),
      control(state, registry.plugins(), machine, node, config.control),
      http(metrics, state, registry.plugins(), node) {}

StateListeners Daemon::Impl::ListenersOfState() {
  return {.on_disk_returned = [this] { follower.OnDiskReturned(); },
          .on_recalled =
              [this](const checkpoint::NodeState& known) {
                TeachBuiltins(registry.plugins(), known, config.admission);
              }};
}

RegistryOptions Daemon::Impl::RegistryOptionsOf() {
  RegistryOptions options{.registration_dir = config.registration.registration_dir,
                          .watcher = {.directory = config.registration.plugins_registry_dir}};
  options.endpoints = {.machine_nodes = machine.node_mask(), .known = ResourcesOf(*state.Load())};
  options.endpoints.probe.prepare = [this](const PluginInfo& plugin, const auto& client,
                                           std::function<void()> ready) {
    TeachPlugin(plugin, client, state.Load(), config.admission, std::move(ready));
  };
  options.endpoints.on_registered = [this](const std::string& resource) {
    state.Post([this, resource] { OnPluginRegistered(resource); });
  };
  options.endpoints.on_call = [this](const PluginCallEvent& call) {
    metrics.plugins.Record(call.resource, call.method, call.took, call.ok);
  };
  return options;
}

void Daemon::Impl::OnPluginRegistered(const std::string& resource) {
  releaser.Replay(resource, [this, resource] { follower.OnPluginRegistered(resource); });
  reconciler.Trigger(resource);  // whatever its options say: it may have lost what it gave
  reconciler.Trigger();
  pod_resources.OnPluginChanged(resource);
}

void Daemon::Impl::StartPlugins() {
  local_plugins = StartBuiltins(
      builtins, {std::exchange(found, {}), state, config.admission, config.process.state_dir},
      {io, machine.node_mask(), registry.in_flight()}, registry, warnings);
  for (const auto& [resource, plugin] : local_plugins) {
    plugin->OnChanged([this, &resource = resource] { node.ReconcileSoon(resource); });
  }
}

// The threads that a container's creation passes. Those that serve clients stay ordinary, so that a
// busy client gets no time before the rest of the node.
void Daemon::Impl::RunInRealTime() {
  std::vector<PostToThread> threads = {
      [this](std::function<void()> job) { state.Post(std::move(job)); },
      [this](std::function<void()> job) { boost::asio::post(io, std::move(job)); }};
  for (const auto& [resource, plugin] : local_plugins) {
    threads.emplace_back(
        [&plugin = *plugin](std::function<void()> job) { plugin.Post(std::move(job)); });
  }
  if (const Status may = manager::RunInRealTime(config.process.realtime_priority, threads);
      !may.ok()) {
    warnings.push_back(MessageOf(may));
  }
}

Status Daemon::Impl::Start() {
  MakeDirectory(config.registration.registration_dir);
  MakeDirectory(config.registration.plugins_registry_dir);
  StartPlugins();
  RunInRealTime();
  for (const std::string& warning : warnings) {
    log::Warning("started with a warning", {{"warning", warning}});
  }
  QRM_RETURN_IF_ERROR(registry.Start());
  sources.Start();
  QRM_RETURN_IF_ERROR(follower.Start());
  reconciler.Start();
  housekeeping.Start();
  running = true;
  loop.Start();
  return StartEdges();
}

Status Daemon::Impl::StartEdges() {
  QRM_RETURN_IF_ERROR(control.Start(config.control.socket));
  QRM_RETURN_IF_ERROR(pod_resources.Start());
  QRM_RETURN_IF_ERROR(http.Start(config.http.address));
  pod_resources.RefreshAllocatable();
  log::Info("serving", {{"version", QRM_VERSION},
                        {"pods", state.Load()->pod_count()},
                        {"cpus", ToString(machine.cpu_set())},
                        {"control", config.control.socket},
                        {"metrics_port", http.port()}});
  return OkStatus();
}

// Edges, then what the runtime and the timers may still begin, then the loops.
void Daemon::Impl::Stop() {
  if (!running) {
    state.Stop();  // a plugin may have posted what uses the parts that go now
    return;
  }
  running = false;
  for (const auto& [resource, plugin] : local_plugins) {
    plugin->OnChanged({});
  }
  http.Stop();
  pod_resources.Stop();
  dry_runs.Stop();  // before control, which waits for its answers
  control.Stop();
  loop.Run([this] {
    follower.Stop();
    sources.Stop();
    reconciler.Stop();
    housekeeping.Stop();
  });
  state.Stop();
  loop.Stop();
}

StatusOr<std::unique_ptr<Daemon>> Daemon::Create(Config config, Machine machine,
                                                 std::vector<BuiltinPlugin> builtins) {
  QRM_ASSIGN_OR_RETURN(StateLock lock, StateLock::Take(config.process.state_dir));
  QRM_ASSIGN_OR_RETURN(checkpoint::OpenedStore opened,
                       checkpoint::OpenSqliteStore(config.process.state_dir));
  const checkpoint::NodeState found = opened.state;
  const bool lost = !opened.repairs.empty();
  const std::vector<std::string> repairs = Repair(opened, machine);
  config.admission.required_plugins = RequiredResources(config.builtin, builtins);
  auto impl = std::make_unique<Impl>(std::move(config), std::move(machine), std::move(lock),
                                     std::move(opened), std::move(builtins));
  impl->found = found;
  impl->rebuilding = lost;
  impl->warnings.insert(impl->warnings.end(), repairs.begin(), repairs.end());
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

Daemon::Daemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() = default;

Status Daemon::Run() {
  if (const Status started = impl_->Start(); !started.ok()) {
    impl_->Stop();
    return started;
  }
  impl_->stop_signals.Wait();
  impl_->Stop();
  return OkStatus();
}

}  // namespace qrm::manager
