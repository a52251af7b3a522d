// Starts and stops the daemon's parts, in order.
#include "manager/daemon/daemon.h"

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <prometheus/counter.h>

#include "api/base/cgroup.h"
#include "api/base/heap.h"
#include "api/base/log.h"
#include "api/base/task_thread.h"
#include "checkpoint/node_state.h"
#include "checkpoint/store.h"
#include "manager/admission/admitter.h"
#include "manager/admission/dry_runs.h"
#include "manager/classes/class_keeper.h"
#include "manager/daemon/config_table.h"
#include "manager/daemon/daemon_parts.h"
#include "manager/daemon/live_config.h"
#include "manager/daemon/node_view.h"
#include "manager/daemon/process/priority.h"
#include "manager/daemon/process/service_manager.h"
#include "manager/daemon/start_builtin.h"
#include "manager/kubelet/kubelet_specs.h"
#include "manager/observability/metrics.h"
#include "manager/podresources/pod_resources_server.h"
#include "manager/pods/runtime_follower.h"
#include "manager/publish/publisher.h"
#include "manager/reconcile/reconciler.h"
#include "manager/registry/registry.h"
#include "manager/state/found_state.h"
#include "topology/machine.h"

namespace qrm::manager {
namespace {

/// Creates a directory for the sockets of other processes, with mode 0750. An existing one is not
/// changed. A failure is not reported here: the user of the directory fails with a message.
void MakeDirectory(const std::string& path) {
  std::error_code error;
  if (std::filesystem::create_directories(path, error)) {
    using std::filesystem::perms;
    std::filesystem::permissions(path, perms::owner_all | perms::group_read | perms::group_exec,
                                 error);
  }
}

/// Sets the process's affinity to the reserved CPUs. Threads inherit it.
Status StayOnReserved(const Config& config, const Machine& machine) {
  QRM_ASSIGN_OR_RETURN(const CpuSet reserved,
                       ReservedCpus(config.builtin, config.machine, machine));
  return reserved.Empty() ? OkStatus() : StayOn(reserved);
}

}  // namespace

struct Daemon::Impl : DaemonParts, private ConfigTaker {
  using DaemonParts::DaemonParts;
  // NOLINTNEXTLINE(bugprone-exception-escape): a loop that cannot be joined ends the program.
  ~Impl() override { Stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status Start();
  Status StartOnLoop();
  Status StartEdges();
  void StartPlugins();
  void NoteStart();
  void RaisePriority();
  void ReadAgain() override;
  void Follow(const StatusOr<Config>& read);
  Status TakeClasses(const ClassesOptions& options) override;
  Status TakePlugins(const BuiltinOptions& options) override;
  void TakeRules(const placement::AdmissionOptions& options) override;
  void NoteChange(const std::string& change) override;
  void Stop();

  ServiceManager service_manager{io, [this] { return node->StalledLoops().empty(); }};
  std::vector<std::string> replaced;  // resources whose plugins the latest reload replaced
  bool running = false;
  bool stopping = false;      // the configuration is not read again; on the I/O loop
  bool has_own_cpus = false;  // written before the threads start
  /// Reads the configuration, so that a long file or a slow disk delays no container. Null before
  /// the first reload.
  std::unique_ptr<TaskThread> reader;
};

void Daemon::Impl::StartPlugins() {
  local_plugins = StartBuiltins(
      builtins, {std::exchange(found, {}), state, config.admission, config.process.state_dir},
      *registry, warnings);
  for (const auto& [resource, plugin] : local_plugins) {
    plugin->OnChanged([this, &resource = resource] {
      boost::asio::post(io, [this, &resource] { node->ReconcileSoon(resource); });
    });
  }
}

// Raises the priority of the threads that a container's creation uses. Threads that serve clients
// stay at normal priority, so that a busy client does not preempt the rest of the node.
void Daemon::Impl::RaisePriority() {
  const std::vector<PostToThread> threads = {
      [this](std::function<void()> job) { state.Post(std::move(job)); },
      [this](std::function<void()> job) { boost::asio::post(io, std::move(job)); }};
  const int realtime = has_own_cpus ? config.process.realtime_priority : 0;
  if (const Status may = RunWith({.nice = config.process.nice, .realtime = realtime}, threads);
      !may.ok()) {
    warnings.push_back(MessageOf(may));
  }
}

void Daemon::Impl::ReadAgain() {
  if (stopping) {
    return;
  }
  housekeeping.KnowConfig();
  if (reader == nullptr) {
    reader = std::make_unique<TaskThread>();
  }
  reader->Post([this] { state.Post([this, read = live_config->Read()] { Follow(read); }); });
}

// On the state loop, so that one admission does not get hints and allocations by two different
// configurations.
void Daemon::Impl::Follow(const StatusOr<Config>& read) {
  replaced.clear();
  const Status taken = live_config->Follow(read, *this);
  for (const std::string& resource : replaced) {
    pod_resources->OnPluginChanged(resource);
  }
  pod_resources->RefreshAllocatable();  // after it, the publisher writes the rules, too
  (taken.ok() ? metrics.reloads.accepted_total : metrics.reloads.refused_total).Increment();
  boost::asio::post(io, [this] { class_keeper->RefreshAll(); });
}

Status Daemon::Impl::TakeClasses(const ClassesOptions& options) {
  return class_book.TakeRules(options);
}

Status Daemon::Impl::TakePlugins(const BuiltinOptions& options) {
  QRM_ASSIGN_OR_RETURN(std::vector<BuiltinPlugin> changed, live_config->MakeNext(options));
  std::vector<std::string> resources;
  resources.reserve(changed.size());
  for (const BuiltinPlugin& plugin : changed) {
    resources.push_back(plugin.resource);
  }
  QRM_RETURN_IF_ERROR(ReplaceBuiltins(std::move(changed), local_plugins));
  replaced = std::move(resources);
  return OkStatus();
}

void Daemon::Impl::TakeRules(const placement::AdmissionOptions& options) {
  admitter->TakeRules(options);
  dry_runs->TakeRules(options);
}

void Daemon::Impl::NoteChange(const std::string& change) {
  NoteEvent({.type = "reload", .message = change});
}

Status Daemon::Impl::Start() {
  // The container list of a large node needs much memory for a moment. In a heap of its own, it
  // does not fragment the memory of objects that stay. Without such a heap, it does.
  boost::asio::post(io, [] { (void)UseHeapApart(); });
  log::NamePods([this](const std::string& uid) {
    const auto known = state.Load();
    const checkpoint::PodRecord* const pod = known->FindPod(uid);
    return pod == nullptr ? std::string()
                          : fmt::format("{}/{}", pod->meta.pod_namespace, pod->meta.name);
  });
  loop.Start();
  MakeDirectory(config.registration.registration_dir);
  MakeDirectory(config.registration.plugins_registry_dir);
  StartPlugins();
  RaisePriority();
  for (const std::string& warning : warnings) {
    log::Warning("started with a warning", {{"warning", warning}});
  }
  running = true;
  NoteStart();
  Status started;
  loop.Run([&] { started = StartOnLoop(); });
  QRM_RETURN_IF_ERROR(started);
  return StartEdges();
}

void Daemon::Impl::NoteStart() {
  NoteEvent({.type = "restart",
             .message = fmt::format("qrmd {} starts; pods on record: {}", QRM_VERSION,
                                    state.Load()->pod_count())});
  if (const std::string problem = state.disk_problem(); !problem.empty()) {
    NoteEvent({.type = "disk", .message = "the disk rejects changes: " + problem});
  }
}

Status Daemon::Impl::StartOnLoop() {
  QRM_RETURN_IF_ERROR(registry->Start());
  sources->Start();
  reconciler->Start();
  class_keeper->Start();
  housekeeping.Start();
  stop_signals.OnHangup([this] { ReadAgain(); });
  return follower->Start();
}

Status Daemon::Impl::StartEdges() {
  QRM_RETURN_IF_ERROR(control.Start(config.control.socket));
  QRM_RETURN_IF_ERROR(pod_resources->Start());
  QRM_RETURN_IF_ERROR(http.Start(config.http));
  QRM_RETURN_IF_ERROR(page.Start(config.http));
  pod_resources->RefreshAllocatable();
  publisher->Start();
  log::Info("serving", {{"version", QRM_VERSION},
                        {"pods", state.Load()->pod_count()},
                        {"cpus", ToString(machine.cpu_set())},
                        {"control", config.control.socket},
                        {"metrics_port", http.metrics_port()},
                        {"probe_port", http.probe_port()},
                        {"page_port", page.port()}});
  return OkStatus();
}

// Stops the servers first, then the sources of events, then the loops.
void Daemon::Impl::Stop() {
  log::NamePods({});
  if (!running) {
    loop.Stop();
    state.Stop();  // a plugin may have posted a task that uses other parts
    return;
  }
  running = false;
  NoteEvent({.type = "restart", .message = "qrmd stops"});
  for (const auto& [resource, plugin] : local_plugins) {
    plugin->OnChanged({});
  }
  page.Stop();
  http.Stop();
  publisher->Stop();
  pod_resources->Stop();
  dry_runs->Stop();  // before control, which waits for its answers
  control.Stop();
  loop.Run([this] {
    follower->Stop();
    sources->Stop();
    reconciler->Stop();
    class_keeper->Stop();
    housekeeping.Stop();
    reader.reset();
    stopping = true;
    service_manager.Ending();
  });
  state.Stop();
  loop.Stop();
}

StatusOr<std::unique_ptr<Daemon>> Daemon::Create(Config config, Machine machine,
                                                 std::vector<BuiltinPlugin> builtins,
                                                 ClassBook::Providers class_providers,
                                                 ConfigSource source) {
  Config as_read = config;
  QRM_ASSIGN_OR_RETURN(StateLock lock, StateLock::Take(config.process.state_dir));
  const Status stays = StayOnReserved(config, machine);
  config.admission.required_plugins = RequiredResources(config.builtin, builtins);
  const auto memory = FindCgroupHierarchy(config.runtime.cgroup_root, "memory", "memory");
  config.admission.has_cgroup_v1 = memory.ok() && memory->is_v1;
  QRM_ASSIGN_OR_RETURN(const std::vector<std::string> netns, NetnsAnnotations(config.builtin));
  std::vector<std::string>& known = config.admission.netns_annotations;
  known.insert(known.end(), netns.begin(), netns.end());
  QRM_ASSIGN_OR_RETURN(checkpoint::OpenedStore opened,
                       checkpoint::OpenSqliteStore(config.process.state_dir));
  const checkpoint::NodeState found = opened.state;
  const bool lost = !opened.repairs.empty();
  const std::vector<std::string> repairs = Repair(opened, machine);
  auto impl =
      std::make_unique<Impl>(std::make_unique<const Config>(std::move(config)), std::move(machine),
                             std::move(lock), std::move(opened), found, std::move(builtins),
                             std::move(class_providers), std::move(as_read), std::move(source));
  impl->rebuilding = lost;
  impl->has_own_cpus = stays.ok();
  if (!stays.ok()) {
    impl->warnings.push_back(MessageOf(stays));
  }
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
  impl_->service_manager.Ready();
  impl_->stop_signals.Wait();
  impl_->Stop();
  return OkStatus();
}

}  // namespace qrm::manager
