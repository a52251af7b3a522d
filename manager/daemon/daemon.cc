// Wires the daemon's parts; none of them knows more of the others than its constructor takes.
#include "manager/daemon/daemon.h"

#include <csignal>
#include <filesystem>
#include <future>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include "api/base/clock.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "checkpoint/store.h"
#include "manager/admission/admitter.h"
#include "manager/admission/dry_runs.h"
#include "manager/admission/releaser.h"
#include "manager/control/control_server.h"
#include "manager/daemon/free_memory.h"
#include "manager/daemon/metered_store.h"
#include "manager/daemon/realtime.h"
#include "manager/daemon/start_builtin.h"
#include "manager/kubelet/kubelet_specs.h"
#include "manager/kubelet/kubelet_watch.h"
#include "manager/observability/http_server.h"
#include "manager/observability/metrics.h"
#include "manager/podresources/pod_resources_server.h"
#include "manager/pods/ended_pods.h"
#include "manager/pods/observer.h"
#include "manager/pods/pod_events.h"
#include "manager/pods/runtime_mode.h"
#include "manager/pods/sync_audit.h"
#include "manager/reconcile/reconciler.h"
#include "manager/registry/registry.h"
#include "manager/runtime/cgroup_reader.h"
#include "manager/runtime/cri/cri_client.h"
#include "manager/runtime/live_containers.h"
#include "manager/runtime/nri/nri_plugin.h"
#include "manager/state/found_state.h"
#include "manager/state/state_lock.h"
#include "manager/state/state_loop.h"

namespace qrm::manager {
namespace {

constexpr std::chrono::seconds kRuntimeProbePeriod{5};

void MakeDirectory(const std::string& path) {
  std::error_code error;
  if (std::filesystem::create_directories(path, error)) {
    using std::filesystem::perms;
    std::filesystem::permissions(path, perms::owner_all | perms::group_read | perms::group_exec,
                                 error);
  }
}

ObserverOptions ObserverOptionsOf(const Config& config) {
  ObserverOptions options = config.pods.observer;
  options.period = config.reconcile.period;
  return options;
}

}  // namespace

// Members stand in the order in which they are made: what is destroyed first uses what stands
// before it.
struct Daemon::Impl final : NodeServices {
  Impl(Config given_config, Machine given_machine, StateLock given_lock,
       checkpoint::OpenedStore opened, std::vector<BuiltinPlugin> given_builtins);
  // NOLINTNEXTLINE(bugprone-exception-escape): a loop that cannot be joined ends the program.
  ~Impl() override { Stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // NodeServices.
  NodeStatus Status() const override;
  std::string RuntimeIdOf(const ContainerKey& key) const override;
  DecisionTimes TimesOf(const ContainerKey& key,
                        std::chrono::system_clock::time_point decided) const override {
    return {reconciler.LastUpdateOf(key), admitter.CommitTimeOf(key, decided)};
  }
  void ReconcileSoon(const std::string& resource) override;
  void TryPod(std::string pod, const std::function<void(StatusOr<DryRunReport>)>& done) override {
    dry_runs.Ask(std::move(pod), done);
  }

  qrm::Status Start();
  qrm::Status StartEdges();
  void StartBuiltins();
  void RunInRealTime();
  void Stop();

  void OnPluginRegistered(const std::string& resource);
  void OnNriSynchronized();
  void OnKubeletFree();
  void Probe();
  void AskVersion();
  void Reattach();
  RegistryOptions RegistryOptionsOf();
  NriOptions NriOptionsOf();

  template <typename Work>
  void RunOnIo(Work work) {
    std::promise<void> done;
    boost::asio::post(io, [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  const Config config;
  const Machine machine;
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  const SystemClock clock;
  const StateLock lock;
  std::vector<std::string> warnings;  // written before the threads start
  bool rebuilding = false;            // the state was lost; written before the threads start

  boost::asio::io_context io{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> io_guard{
      boost::asio::make_work_guard(io)};
  boost::asio::signal_set signals{io, SIGTERM, SIGINT};
  boost::asio::steady_timer probe_timer{io};
  std::promise<void> signalled;

  Metrics metrics;
  StateLoop state;
  LiveContainers live;
  KubeletWatch kubelet;
  const std::vector<BuiltinPlugin> builtins;
  std::vector<std::unique_ptr<LocalPlugin>> local_plugins;  // outlive every call of the registry
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
  EndedPods ended;
  SyncAudit audit;
  Observer observer;
  PodEvents events;
  NriPlugin nri;
  ControlServer control;
  PodResourcesServer pod_resources;
  HttpServer http;

  mutable Mutex mutex;
  StatusOr<RuntimeInfo> cri_version QRM_GUARDED_BY(mutex) = Errorf(StatusCode::kUnavailable,
                                                                   "the runtime was not asked yet");

  bool running = false;
  std::thread io_thread;
};

Daemon::Impl::Impl(Config given_config, Machine given_machine, StateLock given_lock,
                   checkpoint::OpenedStore opened, std::vector<BuiltinPlugin> given_builtins)
    : config(std::move(given_config)),
      machine(std::move(given_machine)),
      lock(std::move(given_lock)),
      warnings(machine.parts().warnings),
      state(MeterStore(std::move(opened), metrics.store), [this] { events.OnDiskReturned(); }),
      kubelet(config.kubelet.state_dir, [this] { OnKubeletFree(); }),
      builtins(std::move(given_builtins)),
      registry(io, RegistryOptionsOf()),
      cri(io, config.runtime.cri),
      sources(io, config.kubelet, config.pod_keys, machine),
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
                  .plugin_call_deadline = config.admission.plugin_call_deadline},
                 config.reconcile),
      ended({.io = io, .live = live, .on_ended = [this] { events.RemoveEnded(); }},
            config.pods.ended_after),
      audit({.io = io,
             .runtime = cri,
             .live = live,
             .synchronize_again = [this] { Reattach(); },
             .on_listed = [this](const auto& ready) { ended.OnListed(ready); }}),
      observer({.io = io,
                .runtime = cri,
                .state = state,
                .live = live,
                .read_cpuset = [this](const std::string& path) { return cgroups.ReadByPath(path); },
                .on_observed = [this](Observation seen) { events.OnObserved(std::move(seen)); }},
               ObserverOptionsOf(config)),
      events({.state = state,
              .source = sources.source(),
              .admitter = admitter,
              .releaser = releaser,
              .live = live,
              .writes = writes,
              .reconcile_soon = [this] { reconciler.Trigger(); },
              .on_synchronized = [this] { OnNriSynchronized(); },
              .on_disconnected = [this] { observer.OnNriAway(); },
              .stands_aside = [this] { return kubelet.stands_aside(); },
              .on_pod_stopped = [this](const auto& pod) { ended.OnStopped(pod.uid, pod.id); }},
             config.admission.deadline),
      nri(io, NriOptionsOf(), events),
      control(state, registry.plugins(), machine, *this, config.control),
      pod_resources(
          state, registry.plugins(), machine, metrics.pod_resources,
          [this] { return !rebuilding || live.synchronized(); }, config.pod_resources),
      http(metrics, state, registry.plugins(), *this) {}

RegistryOptions Daemon::Impl::RegistryOptionsOf() {
  return {.registration_dir = config.registration.registration_dir,
          .watcher = {.directory = config.registration.plugins_registry_dir},
          .endpoints = {.machine_nodes = machine.node_mask(),
                        .known = ResourcesOf(*state.Load()),
                        .on_registered =
                            [this](const std::string& resource) {
                              state.Post([this, resource] { OnPluginRegistered(resource); });
                            },
                        .on_call =
                            [this](const PluginCallEvent& call) {
                              metrics.plugins.Record(call.resource, call.method, call.took,
                                                     call.ok);
                            }}};
}

NriOptions Daemon::Impl::NriOptionsOf() {
  NriOptions options = config.runtime.nri;
  options.reply_timeout = config.admission.deadline * 9 / 10;  // it is out by the deadline
  options.on_answer = [this](const NriAnswer& answer) { metrics.nri.Record(answer); };
  return options;
}

NodeStatus Daemon::Impl::Status() const {
  const NriStatus attached = nri.GetStatus();
  NodeStatus status{.version = QRM_VERSION,
                    .started = started,
                    .runtime = {.runtime = attached.runtime,
                                .nri_connected = attached.connected,
                                .nri_connects = attached.connects,
                                .nri_disconnects = attached.disconnects,
                                .last_sync = attached.last_sync,
                                .problem = attached.problem},
                    .reconcile = reconciler.GetStatus(),
                    .topology_policy = std::string(ToString(config.admission.merge.policy)),
                    .state_path = config.process.state_dir,
                    .warnings = warnings};
  status.reconcile.drift_repairs = writes.repairs();
  {
    const MutexLock guard(mutex);
    status.runtime.cri_reachable = cri_version.ok();
    if (cri_version.ok() && attached.runtime.name.empty()) {
      status.runtime.runtime = *cri_version;
    }
    if (status.runtime.problem.empty()) {
      status.runtime.problem = MessageOf(cri_version.status());
    }
  }
  AddRuntimeMode(attached, observer.GetStatus(), status.runtime);
  status.kubelet_conflicts = kubelet.conflicts();
  status.not_ready_reasons = status.runtime.not_ready_reasons;
  status.degraded_reasons = pod_resources.Problems();
  status.degraded_reasons.insert(status.degraded_reasons.end(),
                                 status.runtime.degraded_reasons.begin(),
                                 status.runtime.degraded_reasons.end());
  status.not_ready_reasons.insert(status.not_ready_reasons.end(), status.kubelet_conflicts.begin(),
                                  status.kubelet_conflicts.end());
  return status;
}

std::string Daemon::Impl::RuntimeIdOf(const ContainerKey& key) const {
  const std::optional<LiveContainer> container = live.Find(key);
  return container.has_value() ? container->id : std::string();
}

void Daemon::Impl::ReconcileSoon(const std::string& resource) {
  reconciler.Trigger(resource);
  pod_resources.OnPluginChanged(resource);
}

void Daemon::Impl::OnPluginRegistered(const std::string& resource) {
  releaser.Replay(resource);
  events.RetryUnplaced();
  reconciler.Trigger();
  pod_resources.OnPluginChanged(resource);
}

void Daemon::Impl::OnNriSynchronized() {
  observer.OnNriBack();
  audit.OnSynchronized();
}

void Daemon::Impl::OnKubeletFree() {
  events.RetryUnplaced();
  reconciler.Trigger();
}

void Daemon::Impl::Probe() {
  AskVersion();
  kubelet.Look();
  GiveBackFreeMemory();  // a list of all containers takes megabytes, for an instant
  probe_timer.expires_after(kRuntimeProbePeriod);
  probe_timer.async_wait([this](const boost::system::error_code& error) {
    if (!error) {
      Probe();
    }
  });
}

void Daemon::Impl::AskVersion() {
  cri.GetVersion([this](const StatusOr<RuntimeInfo>& version) {
    const MutexLock guard(mutex);
    cri_version = version;
  });
}

// The only way to have the runtime tell everything once more.
void Daemon::Impl::Reattach() {
  nri.Stop();
  observer.OnNriAway();
  if (const qrm::Status begun = nri.Start(); !begun.ok()) {
    log::Error("not attaching to the runtime again", {{"error", MessageOf(begun)}});
  }
}

void Daemon::Impl::StartBuiltins() {
  for (const BuiltinPlugin& builtin : builtins) {
    auto plugin = StartBuiltin(builtin, config.process.state_dir,
                               {io, machine.node_mask(), registry.calls()}, warnings);
    qrm::Status added = plugin.status();
    if (plugin.ok()) {
      added = registry.AddBuiltIn(builtin.resource, **plugin);
      (*plugin)->OnChanged([this, resource = builtin.resource] { ReconcileSoon(resource); });
      local_plugins.push_back(*std::move(plugin));
    }
    if (!added.ok()) {
      warnings.push_back(MessageOf(Annotate(added, builtin.resource + " is not served")));
      log::Error("built-in plugin not served",
                 {{"resource", builtin.resource}, {"error", MessageOf(added)}});
    }
  }
}

// The threads that a container's creation passes; those that serve others stay ordinary, so that
// nobody who asks much gets time before the rest of the node.
void Daemon::Impl::RunInRealTime() {
  const int priority = config.process.realtime_priority;
  if (priority == 0) {
    return;
  }
  if (const qrm::Status may = manager::RunInRealTime(priority); !may.ok()) {
    warnings.push_back(MessageOf(may));
    return;
  }
  const auto run = [priority] {
    if (const qrm::Status runs = manager::RunInRealTime(priority); !runs.ok()) {
      log::Warning("a thread is not in real time", {{"error", MessageOf(runs)}});
    }
  };
  state.Post(run);
  boost::asio::post(io, run);
  for (const auto& plugin : local_plugins) {
    plugin->Post(run);
  }
}

qrm::Status Daemon::Impl::Start() {
  MakeDirectory(config.registration.registration_dir);
  MakeDirectory(config.registration.plugins_registry_dir);
  StartBuiltins();
  RunInRealTime();
  for (const std::string& warning : warnings) {
    log::Warning("started with a warning", {{"warning", warning}});
  }
  signals.async_wait([this](const boost::system::error_code& error, int signal) {
    if (!error) {
      log::Info("stopping", {{"signal", signal}});
      signalled.set_value();
    }
  });
  QRM_RETURN_IF_ERROR(registry.Start());
  sources.Start();
  QRM_RETURN_IF_ERROR(nri.Start());
  observer.OnNriAway();
  reconciler.Start();
  Probe();
  running = true;
  io_thread = std::thread([this] { io.run(); });
  return StartEdges();
}

qrm::Status Daemon::Impl::StartEdges() {
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
  for (const auto& plugin : local_plugins) {
    plugin->OnChanged({});
  }
  http.Stop();
  pod_resources.Stop();
  dry_runs.Stop();  // before control, which waits for its answers
  control.Stop();
  RunOnIo([this] {
    nri.Stop();
    sources.Stop();
    observer.Stop();
    audit.Stop();
    ended.Stop();
    reconciler.Stop();
    probe_timer.cancel();
  });
  state.Stop();
  io.stop();
  io_thread.join();
}

StatusOr<std::unique_ptr<Daemon>> Daemon::Create(Config config, Machine machine,
                                                 std::vector<BuiltinPlugin> builtins) {
  QRM_ASSIGN_OR_RETURN(StateLock lock, StateLock::Take(config.process.state_dir));
  QRM_ASSIGN_OR_RETURN(checkpoint::OpenedStore opened,
                       checkpoint::OpenSqliteStore(config.process.state_dir));
  const bool lost = !opened.repairs.empty();
  const std::vector<std::string> repairs = Repair(opened, machine);
  auto impl = std::make_unique<Impl>(std::move(config), std::move(machine), std::move(lock),
                                     std::move(opened), std::move(builtins));
  impl->rebuilding = lost;
  impl->warnings.insert(impl->warnings.end(), repairs.begin(), repairs.end());
  return std::unique_ptr<Daemon>(new Daemon(std::move(impl)));
}

Daemon::Daemon(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Daemon::~Daemon() = default;

Status Daemon::Run() {
  std::future<void> signalled = impl_->signalled.get_future();
  if (const Status started = impl_->Start(); !started.ok()) {
    impl_->Stop();
    return started;
  }
  signalled.wait();
  impl_->Stop();
  return OkStatus();
}

}  // namespace qrm::manager
