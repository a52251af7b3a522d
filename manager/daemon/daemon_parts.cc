// Gives each part its references to the others.
#include "manager/daemon/daemon_parts.h"

#include <utility>

#include <fmt/format.h>

#include "checkpoint/decision_log.h"
#include "checkpoint/store.h"
#include "manager/admission/admitter.h"
#include "manager/admission/dry_runs.h"
#include "manager/admission/explanation.h"
#include "manager/admission/releaser.h"
#include "manager/admission/request_rules.h"
#include "manager/admission/teach_plugin.h"
#include "manager/classes/class_keeper.h"
#include "manager/daemon/class_providers.h"
#include "manager/daemon/config_table.h"
#include "manager/daemon/live_config.h"
#include "manager/daemon/node_view.h"
#include "manager/daemon/start_builtin.h"
#include "manager/kubelet/kubelet_specs.h"
#include "manager/observability/metrics.h"
#include "manager/observability/subsystems.h"
#include "manager/podresources/pod_resources_server.h"
#include "manager/pods/pod_placer.h"
#include "manager/pods/runtime_follower.h"
#include "manager/publish/node_patch.h"
#include "manager/publish/publisher.h"
#include "manager/reconcile/reconciler.h"
#include "manager/registry/plugin_classes.h"
#include "manager/registry/registry.h"
#include "manager/state/found_state.h"
#include "plugins/placement/requests.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {
namespace {

NriOptions NriOptionsOf(const Config& config, Metrics& metrics) {
  NriOptions options = config.runtime.nri;
  options.reply_timeout = config.admission.deadline * 9 / 10;
  options.on_answer = [&metrics](const NriAnswer& answer) { metrics.nri.Record(answer); };
  return options;
}

ClaimDevicesOptions ClaimsOf(const Config& config, const Machine& machine) {
  ClaimDevicesOptions options{.node_name = NodeNameOf(config.publish),
                              .attributes = config.kubelet.node_attributes,
                              .cdi_dirs = config.kubelet.cdi_directories};
  options.sysfs = machine.parts().root + "/sys";
  if (config.kubelet.reads_slices) {
    options.access = [publish = config.publish] { return PublisherAccess(publish); };
  }
  return options;
}

// The cgroups and the kubelet of this machine say nothing about another one.
NodeChecks::Paths CheckedPaths(const Config& config) {
  if (config.machine.source != config::MachineConfig().source) {
    return {};
  }
  return {.cgroup_root = config.runtime.cgroup_root,
          .kubelet_state_dir = config.kubelet.state_dir,
          .writes_cpusets = config.pods.write_cpusets};
}

}  // namespace

// NOLINTNEXTLINE(readability-function-size): one entry per part.
DaemonParts::DaemonParts(std::unique_ptr<const Config> given_config, Machine given_machine,
                         StateLock given_lock, checkpoint::OpenedStore opened,
                         const checkpoint::NodeState& given_found,
                         std::vector<BuiltinPlugin> given_builtins,
                         ClassBook::Providers class_providers, Config as_read, ConfigSource source)
    : read_config(std::move(given_config)),
      machine(std::move(given_machine)),
      lock(std::move(given_lock)),
      found(given_found),
      warnings(machine.parts().warnings),
      owned_metrics(new Metrics()),
      state(std::move(opened), ListenersOfState()),
      decisions(new checkpoint::DecisionLog(
          config.process.state_dir,
          [this](const std::string& pod_uid) { return IsOnNode(pod_uid); })),
      kubelet(config.kubelet.state_dir,
              [this](const std::string& resource) {
                return registry->plugins().Find(resource).has_value();
              }),
      builtins(std::move(given_builtins)),
      registry(new Registry(io, RegistryOptionsOf())),
      cri(io, config.runtime.cri),
      sources(new KubeletSpecs(
          {.io = io,
           .machine = machine,
           .pin_file = config.process.state_dir + "/kubelet-certificate.sha256",
           .on_pod_gone = [this](const std::string& uid) { follower->OnPodGone(uid); },
           .devices = {.kubelet_socket = config.pod_resources.kubelet_socket,
                       .timeout = config.pod_resources.kubelet_timeout,
                       .is_served =
                           [this](const std::string& resource) {
                             const std::string& plugin = PluginNameOf(resource, config.admission);
                             return registry->plugins().Find(plugin).has_value();
                           },
                       .claims_wait = config.kubelet.claims_wait},
           .claims = ClaimsOf(config, machine)},
          config.kubelet, config.pod_keys)),
      cgroups(config.runtime.cgroup_root),
      writes([this](const ForeignWrite& write) { OnDrift(write); }),
      drift({.read = [this](const std::string& path) { return cgroups.ReadByPath(path); },
             .live = live,
             .writes = writes,
             .read_limits =
                 [this](const std::string& path, const StringMap& properties) {
                   return cgroups.LimitsThatDiffer(path, properties);
                 }}),
      class_book(config.classes, WithOtherTypes(std::move(class_providers))),
      class_keeper(new ClassKeeper({.io = io,
                                    .state = state,
                                    .live = live,
                                    .book = class_book,
                                    .stands_aside = [this] { return StandsAside(); },
                                    .note = [this](const auto& event) { NoteEvent(event); },
                                    .may_ask =
                                        [this](const auto& pod_namespace, const auto& name) {
                                          return live_config->Load()->admission.permissions.Allows(
                                              pod_namespace, {.feature = placement::Feature::kClass,
                                                              .name = name});
                                        }},
                                   config.reconcile.period)),
      releaser(new Releaser(state, registry->plugins(), config.admission,
                            [this](const auto& event) { NoteEvent(event); })),
      admitter(
          new Admitter({.state = state,
                        .decisions = *decisions,
                        .plugins = registry->plugins(),
                        .releaser = *releaser,
                        .machine = machine,
                        .clock = clock,
                        .listener = [this](const AdmissionEvent& event) { OnAdmission(event); },
                        .classes = &class_book},
                       config.admission)),
      dry_runs(new DryRuns({.plugins = registry->plugins(),
                            .machine = machine,
                            .clock = clock,
                            .not_ready = [this] { return node->Status().not_ready_reasons; },
                            .specs_from = [this] { return sources->specs_from(); },
                            .state = &state,
                            .classes = &class_book},
                           config.admission, config.pod_keys)),
      reconciler(new Reconciler(
          {.io = io,
           .state = state,
           .plugins = registry->plugins(),
           .runtime = cri,
           .live = live,
           .machine = machine,
           .drift = drift,
           .read_memory = [this](const std::string& at) { return cgroups.ReadMemory(at); },
           .writes_cpusets = config.pods.write_cpusets,
           .on_answer =
               [this](const std::string& plugin) {
                 releaser->Replay(plugin);
                 follower->placer().OnReconciled();
               },
           .on_whole_run = [this] { follower->placer().CompareAllRequests(); },
           .stands_aside = [this] { return StandsAside(); },
           .admission = config.admission},
          config.reconcile)),
      follower(new RuntimeFollower(
          {.io = io,
           .state = state,
           .plugins = registry->plugins(),
           .source = sources->source(),
           .admitter = *admitter,
           .releaser = *releaser,
           .reconciler = *reconciler,
           .runtime = cri,
           .live = live,
           .writes = writes,
           .machine = machine,
           .read_cpuset = [this](const std::string& path) { return cgroups.ReadByPath(path); },
           .writes_cpusets = config.pods.write_cpusets,
           .stands_aside = [this] { return StandsAside(); },
           .classes = class_keeper.get()},
          NriOptionsOf(config, metrics),
          {.pods = config.pods,
           .period = config.reconcile.period,
           .admission_deadline = config.admission.deadline,
           .after_list = [this] { housekeeping.GiveBackSoon(); }})),
      checks(CheckedPaths(config), live),
      reasons(new ReasonLog),
      housekeeping({io, kubelet, *follower, *reconciler, *this, source.file}),
      pod_resources(new PodResourcesServer(
          {.snapshots = state,
           .plugins = registry->plugins(),
           .machine = machine,
           .metrics = metrics.pod_resources,
           .restored = [this] { return !rebuilding || live.synchronized(); }},
          config.pod_resources)),
      live_config(
          new LiveConfig({machine, config, local_plugins}, std::move(as_read), std::move(source))),
      publisher(new Publisher(
          {.snapshots = state,
           .machine = machine,
           .allocatable = [this] { return pod_resources->Allocatable(); },
           .types = [this] { return class_book.Types(); },
           .class_problems =
               [this](const ContainerKey& key) { return class_keeper->ProblemsOf(key); },
           .config =
               [this](const checkpoint::NodeState& known, const CpuSet& offline) {
                 const auto keys = live_config->Load();
                 return keys->told.ok() ? keys->told->Text(known.plugin_values(), offline)
                                        : StatusOr<std::string>(keys->told.status());
               },
           .restored = [this] { return !rebuilding || live.synchronized(); },
           .permissions = [this] { return live_config->Load()->admission.permissions; },
           .drivers =
               [this] {
                 const auto keys = live_config->Load();
                 return DriversText(registry->plugins().List(), keys->admission.drivers,
                                    keys->admission.permissions);
               },
           .policy = config.admission.merge.policy,
           .scope = config.admission.scope,
           .access = [this] { return PublisherAccess(config.publish); }},
          config.publish)),
      node(new NodeView({.io = io,
                         .state = state,
                         .plugins = registry->plugins(),
                         .follower = *follower,
                         .reconciler = *reconciler,
                         .decisions = *decisions,
                         .dry_runs = *dry_runs,
                         .pod_resources = *pod_resources,
                         .publisher = *publisher,
                         .live = live,
                         .writes = writes,
                         .checks = checks,
                         .cgroups = cgroups,
                         .classes = *class_keeper,
                         .specs = *sources,
                         .kubelet = kubelet,
                         .machine = machine,
                         .warnings = warnings,
                         .config = config,
                         .live_config = *live_config})),
      control(state, registry->plugins(), machine, *node, config.control),
      http(metrics, state, registry->plugins(), *node, machine),
      page({.snapshots = state,
            .plugins = registry->plugins(),
            .node = *node,
            .machine = machine,
            .node_name = NodeNameOf(config.publish)}) {}

DaemonParts::~DaemonParts() = default;

ClassBook::Providers DaemonParts::WithOtherTypes(ClassBook::Providers providers) {
  AddRetiredTypes(config.classes, {config.runtime.cgroup_root, config.process.state_dir},
                  *state.Load(), providers);
  for (const auto& [type, rules] : config.classes.types) {
    if (config.classes.enabled && IsPluginType(type)) {
      providers.push_back(std::make_unique<PluginClasses>(type, registry->plugins(),
                                                          config.admission.plugin_call_deadline));
    }
  }
  return providers;
}

StateListeners DaemonParts::ListenersOfState() {
  return {.on_written =
              [this](const WritePace& pace, const Status& written, std::size_t repairs) {
                metrics.store.Record(pace.Took(*pace.ended), written.ok(), repairs);
              },
          .on_disk_refused =
              [this](const std::string& problem) {
                NoteEvent({.type = "disk", .message = "the disk rejects changes: " + problem});
              },
          .on_disk_returned =
              [this] {
                NoteEvent({.type = "disk", .message = "the disk accepts changes again"});
                follower->placer().OnDiskReturned();
              },
          .on_recalled =
              [this](const checkpoint::NodeState& known) {
                TeachBuiltins(registry->plugins(), known, config.admission);
              }};
}

RegistryOptions DaemonParts::RegistryOptionsOf() {
  RegistryOptions options{.registration_dir = config.registration.registration_dir,
                          .watcher = {.directory = config.registration.plugins_registry_dir}};
  options.endpoints = {.machine_nodes = machine.node_mask(), .known = ResourcesOf(*state.Load())};
  options.endpoints.probe.prepare = [this](const PluginInfo& plugin, const auto& client,
                                           std::function<void()> ready) {
    const auto is_live = [this](const ContainerKey& key) { return live.HasPod(key.pod_uid); };
    TeachPlugin(plugin, client,
                {.state = state.Load(),
                 .live_is_known = live.synchronized(),
                 .is_live = is_live,
                 .options = config.admission},
                std::move(ready));
  };
  options.endpoints.probe.on_change = [this](const std::string& resource, const std::string& what) {
    OnPluginChanged(resource, what);
  };
  options.endpoints.on_registered = [this](const std::string& resource) {
    state.Post([this, resource] { OnPluginRegistered(resource); });
  };
  options.endpoints.on_call = [this](const PluginCallEvent& call) {
    metrics.plugins.Record(call.resource, call.method, call.took, call.ok);
  };
  return options;
}

void DaemonParts::OnAdmission(const AdmissionEvent& event) {
  metrics.admission.Record(event);
  std::vector<PodMessage> told = event.warnings;
  if (event.rejected.has_value()) {
    told.push_back(*event.rejected);
  }
  for (const PodMessage& one : told) {
    publisher->Warn(one);
  }
  if (event.ends_pod_of.has_value() && event.rejected.has_value()) {
    state.Post([this, key = *event.ends_pod_of, why = *event.rejected] {
      if (state.Load()->Find(key) == nullptr) {
        publisher->EndPod(why);
      }
    });
  }
}

void DaemonParts::NoteEvent(checkpoint::NodeEvent event) {
  const auto known = state.Load();
  const checkpoint::PodRecord* const pod =
      event.pod_name.empty() ? known->FindPod(event.key.pod_uid) : nullptr;
  if (pod != nullptr) {
    event.pod_namespace = pod->meta.pod_namespace;
    event.pod_name = pod->meta.name;
  }
  decisions->Note(event);
}

void DaemonParts::OnDrift(const ForeignWrite& write) {
  NoteEvent({.type = "drift",
             .message = fmt::format("another process set {}={}; qrmd sets {} again", write.property,
                                    write.theirs, write.ours),
             .key = write.key});
}

void DaemonParts::OnPluginChanged(const std::string& resource, const std::string& what) {
  NoteEvent({.type = sdk::IsDriverResource(resource) ? "driver" : "plugin", .message = what});
}

void DaemonParts::LookForFaults() {
  checks.Look(NodeChecks::Clocks::Now());
  for (const std::string& change : reasons->Note(node->Status())) {
    NoteEvent({.type = "health", .message = change});
  }
}

// Before the runtime has listed its pods, any pod may exist.
bool DaemonParts::StandsAside() const {
  return !config.process.enabled || kubelet.stands_aside();
}

bool DaemonParts::IsOnNode(const std::string& pod_uid) const {
  return !live.synchronized() || live.HasPod(pod_uid) || state.Load()->FindPod(pod_uid) != nullptr;
}

void DaemonParts::OnPluginRegistered(const std::string& resource) {
  // Containers do not wait until a slow plugin has released all removed ones. They are tried again
  // after that, because there is more room then.
  follower->OnPluginRegistered(resource);
  releaser->Replay(resource, [this] { follower->placer().RetryUnplaced(); });
  if (!sdk::IsDriverResource(resource)) {
    reconciler->Trigger(resource);  // despite its options: it may have lost its allocations
  }
  reconciler->Trigger();
  pod_resources->OnPluginChanged(resource);
  class_keeper->Refresh(resource);
}

}  // namespace qrm::manager
