// Many pods at once: none is lost, and the runtime never waits for us longer than it may.
//   test_load [--pods=N] [--containers=N] [--clients=N] [--plugins=builtin|processes]
//             [--runtime=scripted|containerd] [--hang] [--undisturbed] [--in-memory]
// `containerd` needs scripts/containerd.sh around it.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "api/base/errorf.h"
#include "test/e2e/agreement.h"
#include "test/e2e/beside_containerd.h"
#include "test/e2e/node.h"
#include "test/e2e/usable_cpus.h"
#include "test/load/metrics_page.h"
#include "test/load/pod_maker.h"
#include "test/support/await.h"
#include "test/support/before_others.h"
#include "test/support/child_process.h"
#include "test/support/environment.h"
#include "test/support/temp_dir.h"

namespace qrm::test {
namespace {

constexpr double kHookDeadlineSeconds = 1.2;
constexpr const char* kAnswers = "qrm_nri_answer_duration_seconds";
constexpr const char* kCreations = "call=\"CreateContainer\"";

struct Options {
  int pods = 500;
  int containers = 2;
  int clients = 16;
  std::string plugins = "builtin";
  std::string runtime = "scripted";
  bool hang = false;
  bool undisturbed = false;
  bool in_memory = false;

  bool builtin() const { return plugins == "builtin"; }
  bool scripted() const { return runtime == "scripted"; }
  double LimitSeconds() const { return builtin() ? 0.020 : 0.100; }
};

Kubelet::Options KubeletOptions() {
  Kubelet::Options options = KubeletBesideContainerd();
  options.timeout = std::chrono::seconds(120);
  return options;
}

class LoadTest {
 public:
  explicit LoadTest(const Options& options);

  Status Run();

 private:
  void WriteConfigs() const;
  Status Start();
  Status MakeAll();
  Status ExpectAllKnown();
  Status ExpectAnswersInTime() const;
  Status ExpectAnswersInTimeFromAHungPlugin();

  PodSpec Pod(int number) const;
  std::vector<ContainerSpec> Containers(int number) const;
  std::string Config(const std::string& name) const { return work_dir_ + "/" + name + ".yaml"; }

  const Options options_;
  std::unique_ptr<TempDir> dir_;
  std::string work_dir_;
  ScriptedPodMaker* scripted_ = nullptr;  // is `maker_`, or null
  std::unique_ptr<PodMaker> maker_;
  std::unique_ptr<Node> node_;
};

LoadTest::LoadTest(const Options& options) : options_(options) {
  Node::Options node{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                     .builtin_plugins = options.builtin() ? "cpu,memory,nic" : "",
                     .metrics_address = "127.0.0.1:0"};
  if (options.scripted()) {
    dir_.reset(options.in_memory ? new TempDir(TempDir::InMemory()) : new TempDir);
    work_dir_ = dir_->path();
    auto maker = std::make_unique<ScriptedPodMaker>(work_dir_);
    node.nri_socket = maker->nri_socket();
    node.cri_socket = maker->cri_socket();
    scripted_ = maker.get();
    maker_ = std::move(maker);
  } else {
    work_dir_ = FromEnvironment("QRM_WORK_DIR");
    node.nri_socket = FromEnvironment("QRM_NRI_SOCKET");
    node.cri_socket = FromEnvironment("QRM_CRI_SOCKET");
    maker_ = std::make_unique<ContainerdPodMaker>(KubeletOptions());
  }
  if (options.undisturbed) {  // all of its threads run so, as they inherit it
    node.flags = {"--nice=0"};
  }
  node.work_dir = work_dir_ + "/node";
  node.config = Config("qrmd");
  WriteConfigs();
  node_ = std::make_unique<Node>(std::move(node));
}

/// A shared pool for most pods, the other CPUs only for databases, a NIC for all.
void LoadTest::WriteConfigs() const {
  const std::string machine = options_.scripted()
                                  ? "machine: \"synthetic:package:2 [numa] core:20 pu:2\"\n"
                                    "numa-memory: {0: 237706936320, 1: 237806551040}\n"
                                  : "";
  const std::string pool = options_.scripted() ? "0-9,40-49" : ToString(FirstOf(UsableCpus(), 1));
  const std::string rule = "roles: {database: {numa: fewest, share-numa-with: [\"*\"]}}";
  const std::pair<const char*, std::vector<std::string>> plugins[] = {
      {"cpu",
       {"default-pool: batch", "pools: {batch: {cpus: \"" + pool + "\", roles: [batch]}}", rule}},
      {"memory", {rule}},
      {"nic", {"nics: [{interface: eth0, numa-node: 0, ipv4: 192.0.2.1}]", "follow: none"}}};
  std::ofstream daemon(Config("qrmd"));
  daemon << machine << "implicit-resources: [{resource: NIC, roles: [batch, database]}]\n";
  daemon << (options_.builtin() ? "plugins:\n" : "");
  for (const auto& [name, lines] : plugins) {
    std::ofstream own(Config(name));
    own << machine;
    daemon << (options_.builtin() ? fmt::format("  {}:\n", name) : "");
    for (const std::string& line : lines) {
      own << line << "\n";
      daemon << (options_.builtin() ? "    " + line + "\n" : "");
    }
  }
}

Status LoadTest::Start() {
  QRM_RETURN_IF_ERROR(node_->Start(options_.builtin() ? 3 : 0));
  if (!options_.builtin()) {
    QRM_RETURN_IF_ERROR(node_->StartPlugin("cpu", "cpu", Config("cpu")));
    QRM_RETURN_IF_ERROR(node_->StartPlugin("memory", "memory", Config("memory")));
    QRM_RETURN_IF_ERROR(node_->StartPlugin("nic", "NIC", Config("nic")));
  }
  return OkStatus();
}

/// Every twentieth pod's containers have an exclusive CPU each, if the machine has so many.
PodSpec LoadTest::Pod(int number) const {
  const bool database = options_.scripted() && number % 20 == 0;
  return {.name = fmt::format("pod{}", number),
          .uid = fmt::format("uid-{}", number),
          .labels = {{"katalyst.kubewharf.io/pod_role", database ? "database" : "batch"}}};
}

std::vector<ContainerSpec> LoadTest::Containers(int number) const {
  const bool database = options_.scripted() && number % 20 == 0;
  std::vector<ContainerSpec> containers;
  containers.reserve(static_cast<std::size_t>(options_.containers));
  for (int i = 0; i < options_.containers; ++i) {
    containers.push_back({.name = fmt::format("c{}", i),
                          .milli_cpus = database ? 1000 : 10,
                          .memory_bytes = 4 << 20,
                          .cpu_limit = database});
  }
  return containers;
}

Status LoadTest::MakeAll() {
  std::atomic<int> next = 0;
  std::vector<Status> failures(static_cast<std::size_t>(options_.clients));
  std::vector<std::thread> clients;
  clients.reserve(failures.size());
  const auto begin = std::chrono::steady_clock::now();
  for (Status& failure : failures) {
    clients.emplace_back([&] {
      for (int number = next++; number < options_.pods && failure.ok(); number = next++) {
        failure = maker_->Make(Pod(number), Containers(number));
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  for (const Status& failure : failures) {
    QRM_RETURN_IF_ERROR(failure);
  }
  std::cout << fmt::format("{} pods x {} containers by {} clients in {:.1f} s\n", options_.pods,
                           options_.containers, options_.clients, took.count());
  return OkStatus();
}

Status LoadTest::ExpectAllKnown() {
  if (!options_.scripted()) {
    Kubelet kubelet(KubeletOptions());
    return AwaitAgreement(kubelet, *node_, std::chrono::seconds(60));
  }
  QRM_ASSIGN_OR_RETURN(const v1::ListPodsResponse response, node_->ListPods());
  const std::map<std::string, std::string> given = scripted_->cpus();
  std::size_t known = 0;
  for (const v1::Pod& pod : response.pods()) {
    for (const v1::Container& container : pod.containers()) {
      const auto cpus = given.find(pod.uid() + "/" + container.name());
      const auto applied = container.applied().find("CpusetCpus");
      known += cpus != given.end() && applied != container.applied().end() &&
                       applied->second == cpus->second && container.allocations_size() == 3
                   ? 1
                   : 0;
    }
  }
  const auto made =
      static_cast<std::size_t>(options_.pods) * static_cast<std::size_t>(options_.containers);
  if (given.size() != made || known != made) {
    return Errorf(StatusCode::kInternal, "{} containers were made, {} of {} are known as they run",
                  given.size(), known, made);
  }
  return OkStatus();
}

Status LoadTest::ExpectAnswersInTime() const {
  QRM_ASSIGN_OR_RETURN(const Histogram answers,
                       ReadHistogram(node_->metrics_port(), kAnswers, kCreations));
  const double limit = options_.LimitSeconds();
  std::cout << fmt::format(
      "CreateContainer inside qrmd, {} plugins: {} answers, mean {:.2f} ms, p50 <= {} ms, p99 <= "
      "{} "
      "ms, {:.2f} % within {} ms\n",
      options_.plugins, answers.count, 1000 * answers.sum_seconds / answers.count,
      1000 * answers.Quantile(0.5), 1000 * answers.Quantile(0.99), 100 * answers.ShareWithin(limit),
      1000 * limit);
  if (answers.ShareWithin(limit) < 0.99) {
    return Errorf(StatusCode::kDeadlineExceeded, "less than 99 % of the answers came within {} ms",
                  1000 * limit);
  }
  if (answers.ShareWithin(kHookDeadlineSeconds) < 1) {
    return Errorf(StatusCode::kDeadlineExceeded, "an answer came after more than {} s",
                  kHookDeadlineSeconds);
  }
  return OkStatus();
}

/// Creations are rejected in time, with the plugin's name, and continue once it is back.
Status LoadTest::ExpectAnswersInTimeFromAHungPlugin() {
  const int first = options_.pods;
  StopChild(node_->plugin_pid("nic"));
  constexpr int kRefusals = 5;
  std::vector<Status> refusals;
  refusals.reserve(kRefusals);
  for (int i = 0; i < kRefusals; ++i) {
    refusals.push_back(maker_->Make(Pod(first + i), Containers(first + i)));
  }
  ::kill(node_->plugin_pid("nic"), SIGCONT);
  for (const Status& refusal : refusals) {
    if (refusal.ok() || MessageOf(refusal).find("NIC") == std::string::npos) {
      return Errorf(StatusCode::kInternal, "with a hung plugin, a creation was answered with: {}",
                    refusal.ok() ? "success" : MessageOf(refusal));
    }
  }
  std::cout << "with a hung plugin: " << MessageOf(refusals.front()) << "\n";
  const bool back = Await([&] { return maker_->Make(Pod(first + 5), Containers(first + 5)).ok(); });
  if (!back) {
    return Errorf(StatusCode::kInternal, "no pod is admitted though the plugin goes on");
  }
  QRM_ASSIGN_OR_RETURN(const Histogram answers,
                       ReadHistogram(node_->metrics_port(), kAnswers, kCreations));
  if (answers.ShareWithin(kHookDeadlineSeconds) < 1) {
    return Errorf(StatusCode::kDeadlineExceeded, "an answer came after more than {} s",
                  kHookDeadlineSeconds);
  }
  return OkStatus();
}

Status LoadTest::Run() {
  QRM_RETURN_IF_ERROR(Start());
  QRM_RETURN_IF_ERROR(MakeAll());
  QRM_RETURN_IF_ERROR(ExpectAllKnown());
  QRM_RETURN_IF_ERROR(ExpectAnswersInTime());
  if (options_.hang) {
    QRM_RETURN_IF_ERROR(ExpectAnswersInTimeFromAHungPlugin());
  }
  return node_->Stop();
}

}  // namespace
}  // namespace qrm::test

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  CLI::App app("Makes many pods at once and checks that none is lost and no answer is late");
  qrm::test::Options options;
  app.add_option("--pods", options.pods)->capture_default_str();
  app.add_option("--containers", options.containers, "of each pod")->capture_default_str();
  app.add_option("--clients", options.clients, "that make pods at once")->capture_default_str();
  app.add_option("--plugins", options.plugins, "where they run")
      ->check(CLI::IsMember({"builtin", "processes"}))
      ->capture_default_str();
  app.add_option("--runtime", options.runtime)
      ->check(CLI::IsMember({"scripted", "containerd"}))
      ->capture_default_str();
  app.add_flag("--hang", options.hang, "in the end one plugin process hangs for a while");
  app.add_flag("--undisturbed", options.undisturbed,
               "run before everything else on the machine, as on a node that is not busy");
  app.add_flag("--in-memory", options.in_memory,
               "state on no disk that others keep busy: only what qrmd itself does is measured");
  CLI11_PARSE(app, argc, argv);
  if (options.hang && options.builtin()) {
    std::cerr << "test_load: --hang needs --plugins=processes\n";
    return 2;
  }
  std::optional<qrm::test::BeforeOthers> undisturbed;  // also qrmd and the plugins
  if (options.undisturbed) {
    undisturbed.emplace();
  }
  if (const qrm::Status status = qrm::test::LoadTest(options).Run(); !status.ok()) {
    std::cout << std::flush;
    std::cerr << "test_load: " << qrm::MessageOf(status) << "\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
