// Configures and wires the parts as the daemon does.
#include "bench/bench_node.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "api/base/check.h"
#include "api/base/clock.h"
#include "bench/target.h"
#include "checkpoint/decision_log.h"
#include "checkpoint/store.h"
#include "manager/admission/admitter.h"
#include "manager/admission/releaser.h"
#include "manager/admission/teach_plugin.h"
#include "manager/daemon/config_table.h"
#include "manager/daemon/start_builtin.h"
#include "manager/registry/calls/local_plugin.h"
#include "manager/registry/registry.h"
#include "manager/state/state_loop.h"
#include "plugins/config/machine_config.h"
#include "plugins/sdk/running_plugin.h"
#include "test/support/await.h"
#include "test/support/child_process.h"
#include "test/support/loop_thread.h"
#include "topology/machine.h"

namespace qrm::bench {
namespace {

constexpr char kMachineKeys[] =
    "machine: \"synthetic:package:2 [numa] core:20 pu:2\"\n"
    "numa-memory: {0: 237706936320, 1: 237806551040}\n";

/// Program name -> its keys, one per line.
const std::map<std::string, std::vector<std::string>> kPluginKeys = {
    {"cpu",
     {"pools: {online: {cpus: \"0-15,40-55\", roles: [online]}}",
      "roles: {service: {numa: one, share-numa-with: [service]}}"}},
    {"memory", {"roles: {service: {numa: one, share-numa-with: [service]}}"}},
    {"nic",
     {"nics: [{interface: eth0, numa-node: 0, ipv6: \"2001:db8::1\"}, "
      "{interface: eth1, numa-node: 1, ipv6: \"2001:db8::2\"}]"}}};

std::string WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

std::string DaemonKeys() {
  std::string text = std::string(kMachineKeys) +
                     "topology-policy: single-numa-node\n"
                     "compute-drivers: {round-robin: {namespaces: [production]}}\n"
                     "implicit-resources: [{resource: NIC, roles: [online, service]}]\n"
                     "plugins:\n";
  for (const auto& [name, keys] : kPluginKeys) {
    text += "  " + name + ":\n";
    for (const std::string& key : keys) {
      text += "    " + key + "\n";
    }
  }
  return text;
}

template <typename T>
T Must(StatusOr<T> value) {
  if (!value.ok()) {
    fmt::print(stderr, "{}\n", MessageOf(value.status()));
  }
  QRM_CHECK(value.ok());
  return *std::move(value);
}

/// Counts the commits.
class CountingStore final : public checkpoint::Store {
 public:
  CountingStore(std::unique_ptr<checkpoint::Store> store, std::atomic<std::size_t>& commits)
      : store_(std::move(store)), commits_(commits) {}

  Status Commit(const checkpoint::Change& change) override {
    ++commits_;
    return store_->Commit(change);
  }
  Status Remember(const checkpoint::Change& change) override {
    commits_ += change.Empty() ? 0 : 1;
    return store_->Remember(change);
  }
  const checkpoint::NodeState& state() const override { return store_->state(); }

 private:
  const std::unique_ptr<checkpoint::Store> store_;
  std::atomic<std::size_t>& commits_;
};

checkpoint::OpenedStore OpenStore(const std::string& directory, std::atomic<std::size_t>& commits) {
  checkpoint::OpenedStore opened = *checkpoint::OpenSqliteStore(directory);
  opened.store = std::make_unique<CountingStore>(std::move(opened.store), commits);
  return opened;
}

manager::Config ReadConfig(const std::string& directory) {
  return Must(manager::ReadConfig(WriteDaemonConfig(directory), {}));
}

/// With plugins that are resynced as qrmd does it. A lone cpu plugin in a process is not: it is
/// beside a compute driver, so it waits for its disk.
manager::RegistryOptions RegistryOptionsIn(const std::string& directory, PluginsIn plugins_in,
                                           const Machine& machine, const manager::StateLoop& state,
                                           const placement::AdmissionOptions& admission) {
  manager::RegistryOptions options;
  options.registration_dir = directory + "/registration";
  options.watcher.directory = directory + "/plugins";
  options.endpoints.machine_nodes = machine.node_mask();
  if (plugins_in != PluginsIn::kCpuProcess) {
    options.endpoints.probe.prepare = [&](const manager::PluginInfo& plugin, const auto& client,
                                          std::function<void()> ready) {
      manager::TeachPlugin(plugin, client,
                           {.state = state.Load(),
                            .is_live = [](const ContainerKey&) { return true; },
                            .options = admission},
                           std::move(ready));
    };
  }
  std::filesystem::create_directories(options.registration_dir);
  std::filesystem::create_directories(options.watcher.directory);
  return options;
}

bool IsProcess(PluginsIn plugins_in, const std::string& resource) {
  return plugins_in == PluginsIn::kProcesses ||
         (plugins_in == PluginsIn::kCpuProcess && resource == "cpu");
}

}  // namespace

std::string WriteDaemonConfig(const std::string& directory) {
  return WriteFile(directory + "/qrmd.yaml", DaemonKeys());
}

std::string WritePluginConfig(const std::string& directory, const std::string& name) {
  std::string text = kMachineKeys;
  for (const std::string& key : kPluginKeys.at(name)) {
    text += key + "\n";
  }
  return WriteFile(directory + "/" + name + ".yaml", text);
}

const std::map<std::string, std::string>& PluginResources() {
  static const std::map<std::string, std::string> resources = {
      {"cpu", "cpu"}, {"memory", "memory"}, {"nic", "NIC"}};
  return resources;
}

struct BenchNode::Impl {
  Impl(const std::string& node_directory, PluginsIn plugins_in, NodeClasses node_classes);

  void StartProcess(const std::string& bin_dir, const std::string& name);
  void AwaitPlugins();
  std::vector<std::string> Logs() const;

  const std::string directory;
  const manager::Config config;
  const Machine machine;
  const SystemClock clock;
  std::atomic<std::size_t> commits = 0;
  manager::StateLoop state;
  test::LoopThread io;
  std::vector<std::unique_ptr<test::ChildProcess>> processes;
  std::vector<manager::BuiltinPlugin> builtins;
  std::vector<std::unique_ptr<manager::LocalPlugin>> local_plugins;
  std::unique_ptr<manager::Registry> registry;
  manager::Releaser releaser;
  const manager::ClassBook classes;
  checkpoint::DecisionLog decisions;
  manager::Admitter admitter;
};

BenchNode::Impl::Impl(const std::string& node_directory, PluginsIn plugins_in,
                      NodeClasses node_classes)
    : directory(node_directory),
      config(ReadConfig(directory)),
      machine(Must(config::LoadMachine(config.machine))),
      state(OpenStore(directory + "/state", commits)),
      registry(std::make_unique<manager::Registry>(
          io.io(), RegistryOptionsIn(directory, plugins_in, machine, state, config.admission))),
      releaser(state, registry->plugins(), {}),
      classes(std::move(node_classes.options), std::move(node_classes.providers)),
      decisions(directory + "/state"),
      admitter({.state = state,
                .decisions = decisions,
                .plugins = registry->plugins(),
                .releaser = releaser,
                .machine = machine,
                .clock = clock,
                .classes = &classes},
               {.merge = config.admission.merge, .drivers = config.admission.drivers}) {}

BenchNode::BenchNode(const std::string& directory, const std::string& bin_dir, PluginsIn plugins_in,
                     NodeClasses classes)
    : impl_(std::make_unique<Impl>(directory, plugins_in, std::move(classes))) {
  impl_->builtins = Must(manager::MakeBuiltinPlugins(impl_->config.builtin, impl_->machine));
  for (const manager::BuiltinPlugin& builtin : impl_->builtins) {
    if (!IsProcess(plugins_in, builtin.resource)) {
      impl_->local_plugins.push_back(
          Must(manager::StartBuiltin(builtin, {*impl_->state.Load(), impl_->state,
                                               impl_->config.admission, directory + "/state"})));
      QRM_CHECK(impl_->registry->AddBuiltIn(builtin.resource, *impl_->local_plugins.back()).ok());
    }
  }
  Status started;
  impl_->io.Run([&] { started = impl_->registry->Start(); });
  QRM_CHECK(started.ok());
  for (const auto& [name, resource] : PluginResources()) {
    if (IsProcess(plugins_in, resource)) {
      impl_->StartProcess(bin_dir, name);
    }
  }
  impl_->AwaitPlugins();
}

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
BenchNode::~BenchNode() {
  impl_->state.Stop();
  impl_->io.Run([this] { impl_->registry.reset(); });
}

void BenchNode::Impl::StartProcess(const std::string& bin_dir, const std::string& name) {
  const std::string file = WritePluginConfig(directory, name);
  processes.push_back(std::make_unique<test::ChildProcess>(
      std::vector<std::string>{bin_dir + "/qrm-plugin-" + name, "--config", file,
                               "--plugins-registry-dir", directory + "/plugins", "--state-dir",
                               directory + "/state"},
      directory + "/" + name + ".log"));
}

void BenchNode::Impl::AwaitPlugins() {
  for (const auto& [name, resource] : PluginResources()) {
    const bool live = test::Await([&, &wanted = resource] {
      const auto info = registry->plugins().Find(wanted);
      return info.has_value() && info->live;
    });
    QRM_CHECK(live);
  }
}

manager::StateLoop& BenchNode::state() {
  return impl_->state;
}

std::vector<checkpoint::DecisionTrace> BenchNode::Decisions() {
  return impl_->decisions.Read();
}

manager::Plugins& BenchNode::plugins() {
  return impl_->registry->plugins();
}

const Machine& BenchNode::machine() const {
  return impl_->machine;
}

boost::asio::io_context& BenchNode::io() {
  return impl_->io.io();
}

std::size_t BenchNode::commits() const {
  return impl_->commits;
}

void BenchNode::RunOnIo(const std::function<void()>& work) {
  impl_->io.Run(work);
}

placement::ContainerDemand BenchNode::DemandOf(std::size_t number, Kind kind) {
  const std::string role = kind == Kind::kPinned ? "service" : "online";
  placement::ContainerDemand demand;
  demand.pod = {.uid = fmt::format("{:08x}-0000-4000-8000-{:012x}", number * 0x9e3779b1U, number),
                .pod_namespace = "production",
                .name = fmt::format("service-{}", number),
                .role = role,
                .qos_class = "Guaranteed",
                .labels = {{"app", "service"}, {"katalyst.kubewharf.io/pod_role", role}},
                .annotations = {{"example.com/owner", "team-a"}}};
  demand.container = "main";
  demand.requests = {{"cpu", kind == Kind::kPinned ? 4 : 0.5}, {"memory", 1 << 20}, {"NIC", 1}};
  demand.source = "bench";
  return demand;
}

void BenchNode::Admit(const placement::ContainerDemand& demand) {
  const auto admitted = impl_->admitter.Admit(demand, manager::Admitter::Moment::kAtCreation,
                                              DeadlineAfter(std::chrono::seconds(10)));
  if (!admitted.ok()) {
    fmt::print(stderr, "{}\n", MessageOf(admitted.status()));
  }
  QRM_CHECK(admitted.ok() && (admitted->properties.contains("CpusetCpus")));
}

void BenchNode::Remove(const std::string& pod_uid) {
  QRM_CHECK(impl_->releaser.RemovePods({pod_uid}).ok());
  impl_->releaser.FinishRemovals();
}

double BenchNode::TimeOf(const placement::ContainerDemand& demand) {
  const double took = MicrosecondsOf([&] { Admit(demand); });
  Remove(demand.pod.uid);
  return took;
}

void BenchNode::Run(const std::function<void()>& work) {
  std::promise<void> done;
  impl_->state.Post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

std::vector<std::string> BenchNode::Impl::Logs() const {
  const std::string state_dir = directory + "/state";
  std::vector<std::string> logs = {state_dir + "/checkpoint.db-wal"};
  if (!processes.empty()) {  // built-in plugins keep nothing
    for (const auto& [name, resource] : PluginResources()) {
      const std::string log =
          sdk::StatePath({.resource = resource, .state_dir = state_dir}) + "-wal";
      if (std::filesystem::exists(log)) {  // external programs keep theirs elsewhere, or nothing
        logs.push_back(log);
      }
    }
  }
  return logs;
}

std::vector<std::size_t> BenchNode::LogBytes() const {
  std::vector<std::size_t> bytes;
  for (const std::string& log : impl_->Logs()) {
    bytes.push_back(std::filesystem::file_size(log));
  }
  return bytes;
}

std::vector<std::chrono::file_clock::time_point> BenchNode::LogTimes() const {
  std::vector<std::chrono::file_clock::time_point> times;
  for (const std::string& log : impl_->Logs()) {
    times.push_back(std::filesystem::last_write_time(log));
  }
  return times;
}

}  // namespace qrm::bench
