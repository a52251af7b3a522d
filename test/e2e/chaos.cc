// kill -9 of qrmd, containerd and a plugin's process at random while pods come and go on a real
// containerd. Whenever all is up again, every container has what qrmd reports, none runs on
// another's exclusive CPU, and pods are admitted. scripts/containerd.sh starts containerd and this
// program.
//   qrm-chaos [--seconds=N] [--seed=N]
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "api/base/errorf.h"
#include "manager/runtime/cgroup_cpusets.h"
#include "test/e2e/agreement.h"
#include "test/e2e/beside_containerd.h"
#include "test/e2e/kubelet.h"
#include "test/e2e/node.h"
#include "test/e2e/usable_cpus.h"
#include "test/support/await.h"
#include "test/support/environment.h"
#include "test/support/killer.h"

namespace qrm::test {
namespace {

using std::chrono::steady_clock;

constexpr char kOwning[] = "database";
constexpr std::size_t kMostPods = 8;
constexpr std::size_t kPlugins = 2;  // memory inside qrmd, cpu in a process
/// A pod whose removal the runtime kept to itself is found by the next list.
constexpr std::chrono::seconds kSoonFree{15};

/// The first CPU is for pods that share; owners get one exclusive CPU each.
class Chaos {
 public:
  explicit Chaos(uint32_t seed)
      : random_(seed), node_(OptionsOf(work_dir_)), kubelet_(KubeletBesideContainerd()) {}

  Status Start() {
    WriteConfigs();
    QRM_RETURN_IF_ERROR(node_.Start(1));
    return StartPlugin();
  }
  /// Faults, pods that come and go beside them, and the checks when all is up again.
  Status Round();
  Status Stop() {
    QRM_RETURN_IF_ERROR(kubelet_.RemovePodsBut({}));
    return node_.Stop();
  }
  std::string Summary() const;
  /// The end of qrmd's log.
  std::string LogEnd() const;

 private:
  struct Pod {
    RunningPod running;
    bool owns = false;
  };

  static Node::Options OptionsOf(const std::string& work_dir);
  void WriteConfigs() const;
  Status StartPlugin() { return node_.StartPlugin("cpu", "cpu", work_dir_ + "/cpu.yaml"); }

  int Draw(int below) { return static_cast<int>(random_() % static_cast<uint32_t>(below)); }
  static pid_t ContainerdPid();
  void ArmKiller();
  Status Repair();
  void Disturbed();
  Status Undisturbed();
  enum class Wants { kItsOwn, kToShare };
  Status Add(Wants wants);
  Status Remove();
  Status Replace();
  Status Resize();
  int Owners() const;
  std::map<std::string, Pod>::iterator DrawPod();
  Status ExpectOwners();
  Status ExpectRecords();

  const std::string work_dir_ = FromEnvironment("QRM_WORK_DIR") + "/chaos";
  std::mt19937 random_;
  Node node_;
  Kubelet kubelet_;
  std::vector<std::unique_ptr<Killer>> killers_;
  std::map<std::string, Pod> pods_;  // by UID
  int next_pod_ = 0;
  std::map<std::string, int> counts_;
};

Node::Options Chaos::OptionsOf(const std::string& work_dir) {
  return {.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
          .work_dir = work_dir,
          .config = work_dir + "/qrmd.yaml",
          .nri_socket = FromEnvironment("QRM_NRI_SOCKET"),
          .cri_socket = FromEnvironment("QRM_CRI_SOCKET"),
          .builtin_plugins = "memory",
          .reconcile_period = "500ms"};
}

void Chaos::WriteConfigs() const {
  const std::string roles =
      fmt::format("roles: {{{}: {{numa: one, share-numa-with: [\"*\"]}}}}", kOwning);
  // On a machine that others use too.
  std::ofstream(work_dir_ + "/qrmd.yaml") << "plugin-call-deadline: 1500ms\n"
                                             "admission-deadline: 1800ms\n"
                                             "plugins:\n  memory:\n    "
                                          << roles << "\n";
  std::ofstream(work_dir_ + "/cpu.yaml")
      << "reserved-cpus: \"" << ToString(FirstOf(UsableCpus(), 1)) << "\"\nstatic: true\n"
      << roles << "\n";
}

pid_t Chaos::ContainerdPid() {
  pid_t pid = 0;
  std::ifstream(FromEnvironment("QRM_WORK_DIR") + "/containerd.pid") >> pid;
  return pid;
}

void Chaos::ArmKiller() {
  const std::chrono::microseconds after(Draw(800000));
  const int whom = Draw(3);
  const char* const name = whom == 0 ? "qrmd" : whom == 1 ? "containerd" : "cpu plugin";
  const pid_t pid = whom == 0   ? node_.daemon_pid()
                    : whom == 1 ? ContainerdPid()
                                : node_.plugin_pid("cpu");
  ++counts_[fmt::format("kill -9 of {}", name)];
  killers_.push_back(std::make_unique<Killer>(pid, after));
}

/// Starts what was killed, and has kubelet remove pods that it does not know.
Status Chaos::Repair() {
  killers_.clear();  // pending kills are called off
  if (!Await([this] { return kubelet_.ListContainers().ok(); }, std::chrono::seconds(30))) {
    return Errorf(StatusCode::kUnavailable, "containerd does not answer; see containerd.log");
  }
  if (!node_.DaemonRuns()) {
    QRM_RETURN_IF_ERROR(node_.Start(0));
  }
  if (node_.PluginRuns("cpu")) {
    QRM_RETURN_IF_ERROR(node_.WaitForPlugins(kPlugins));
  } else {
    QRM_RETURN_IF_ERROR(StartPlugin());
  }
  std::set<std::string> uids;
  for (const auto& [uid, pod] : pods_) {
    uids.insert(uid);
  }
  return kubelet_.RemovePodsBut(uids);
}

/// Failures are ignored: kubelet would try again.
void Chaos::Disturbed() {
  for (int acts = 4 + Draw(8); acts > 0; --acts) {
    const int what = Draw(10);
    const Status done = what < 3   ? Add(Wants::kToShare)
                        : what < 5 ? Add(Wants::kItsOwn)
                        : what < 7 ? Remove()
                        : what < 9 ? Replace()
                                   : Resize();
    ++counts_[done.ok() ? "acts done beside a fault" : "acts failed beside a fault"];
  }
}

/// A containerd that was killed finds some of its former files, and is asked again as kubelet does.
bool IsOfQrmd(const Status& refusal) {
  return MessageOf(refusal).find("cannot admit") != std::string::npos;
}

/// When all is up, a shared pod is admitted at once, and a pod with an exclusive CPU soon.
Status Chaos::Undisturbed() {
  while (pods_.size() > kMostPods / 2) {
    QRM_RETURN_IF_ERROR(Remove());
  }
  Status shared;
  Await(
      [&] {
        shared = Add(Wants::kToShare);
        return shared.ok() || IsOfQrmd(shared);
      },
      kSoonFree);
  QRM_RETURN_IF_ERROR(Annotate(shared, "asks nothing special and was rejected"));
  Status admitted;
  Await(
      [&] {
        admitted = Add(Wants::kItsOwn);
        return admitted.ok();
      },
      kSoonFree);
  return Annotate(admitted, "was rejected although CPUs are free");
}

Status Chaos::Add(Wants wants) {
  const bool owns = wants == Wants::kItsOwn;
  if (owns && Owners() >= UsableCpus().Count() - 1) {
    return Remove();
  }
  const std::string name = fmt::format("p{}", next_pod_++);
  PodSpec spec = {.name = name,
                  .uid = "uid-" + name,
                  .container = {.milli_cpus = 100, .memory_bytes = 16 << 20}};
  if (owns) {
    spec.labels["katalyst.kubewharf.io/pod_role"] = kOwning;
    spec.container.milli_cpus = 1000;
    spec.container.cpu_limit = true;
  }
  QRM_ASSIGN_OR_RETURN(const RunningPod pod, kubelet_.RunPod(spec));
  pods_[spec.uid] = {pod, owns};
  return OkStatus();
}

std::map<std::string, Chaos::Pod>::iterator Chaos::DrawPod() {
  return std::next(pods_.begin(), Draw(static_cast<int>(pods_.size())));
}

// If the runtime does not do it now, kubelet does it when all is up again.
Status Chaos::Remove() {
  if (pods_.empty()) {
    return OkStatus();
  }
  const auto pod = DrawPod();
  const RunningPod removed = pod->second.running;
  pods_.erase(pod);
  return kubelet_.RemovePod(removed);
}

// Recreates its container, or its sandbox too. A pod that was created halfway is given up.
Status Chaos::Replace() {
  if (pods_.empty()) {
    return OkStatus();
  }
  const auto pod = DrawPod();
  RunningPod& running = pod->second.running;
  const Status done =
      Draw(2) == 0 ? kubelet_.RestartContainer(running) : kubelet_.ReplaceSandbox(running);
  if (!done.ok()) {
    pods_.erase(pod);
  }
  return done;
}

Status Chaos::Resize() {
  if (pods_.empty()) {
    return OkStatus();
  }
  const Pod& pod = DrawPod()->second;
  if (pod.owns) {
    return OkStatus();
  }
  const CgroupValues values = ValuesFor({.milli_cpus = 100 + Draw(900), .memory_bytes = 16 << 20});
  return kubelet_.Resize(pod.running.container_id, values);
}

int Chaos::Owners() const {
  return static_cast<int>(std::count_if(pods_.begin(), pods_.end(),
                                        [](const auto& entry) { return entry.second.owns; }));
}

/// By the kernel alone.
Status Chaos::ExpectOwners() {
  std::map<int, std::string> owner_of;
  std::map<std::string, CpuSet> shared;
  for (const auto& [uid, pod] : pods_) {
    QRM_ASSIGN_OR_RETURN(const nlohmann::json info, kubelet_.Inspect(pod.running.container_id));
    QRM_ASSIGN_OR_RETURN(const manager::CgroupCpuset actual,
                         manager::CgroupReader().ReadByPid(info.value("pid", 0U)));
    if (!pod.owns) {
      shared[uid] = actual.cpus;
      continue;
    }
    for (const int cpu : actual.cpus) {
      const auto [owner, fresh] = owner_of.emplace(cpu, uid);
      if (!fresh || actual.cpus.Count() != 1) {
        return Errorf(StatusCode::kInternal, "{} is to own one CPU and has {}; {} owns CPU {}", uid,
                      ToString(actual.cpus), owner->second, cpu);
      }
    }
  }
  for (const auto& [uid, cpus] : shared) {
    for (const int cpu : cpus) {
      if (owner_of.contains(cpu)) {
        return Errorf(StatusCode::kInternal, "{} shares CPU {}, which {} owns", uid, cpu,
                      owner_of.at(cpu));
      }
    }
  }
  return OkStatus();
}

/// Only existing pods are on record.
Status Chaos::ExpectRecords() {
  QRM_ASSIGN_OR_RETURN(const v1::ListPodsResponse records, node_.ListPods());
  for (const v1::Pod& pod : records.pods()) {
    if (!pods_.contains(pod.uid())) {
      return Errorf(StatusCode::kInternal, "{} is gone and still on record", pod.uid());
    }
  }
  return OkStatus();
}

Status Chaos::Round() {
  for (int faults = 1 + Draw(2); faults > 0; --faults) {
    ArmKiller();
  }
  Disturbed();
  QRM_RETURN_IF_ERROR(Repair());
  QRM_RETURN_IF_ERROR(Undisturbed());
  Status held;
  Await(
      [&] {
        held = CompareAll(kubelet_, node_);
        held.Update(ExpectOwners());
        held.Update(ExpectRecords());
        return held.ok();
      },
      std::chrono::seconds(20));
  ++counts_["rounds"];
  return held;
}

std::string Chaos::LogEnd() const {
  constexpr std::size_t kEnd = 6000;
  std::ifstream file(work_dir_ + "/logs/qrmd.log");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return text.substr(text.size() > kEnd ? text.size() - kEnd : 0);
}

std::string Chaos::Summary() const {
  std::string text;
  for (const auto& [what, count] : counts_) {
    text += fmt::format("  {:5} {}\n", count, what);
  }
  return text;
}

Status Run(int seconds, uint32_t seed) {
  Chaos chaos(seed);
  QRM_RETURN_IF_ERROR(chaos.Start());
  const auto end = steady_clock::now() + std::chrono::seconds(seconds);
  auto next_report = steady_clock::now() + std::chrono::minutes(1);
  Status held;
  while (held.ok() && steady_clock::now() < end) {
    held = chaos.Round();
    if (steady_clock::now() >= next_report) {
      std::cout << chaos.Summary() << std::flush;
      next_report += std::chrono::minutes(1);
    }
  }
  std::cout << "with seed " << seed << ":\n" << chaos.Summary() << std::flush;
  if (!held.ok()) {
    std::cerr << chaos.LogEnd();
    return held;
  }
  return chaos.Stop();
}

}  // namespace
}  // namespace qrm::test

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  CLI::App app("Kills qrmd, containerd and a plugin at random while pods come and go.");
  int seconds = 30;
  uint32_t seed = 1;
  app.add_option("--seconds", seconds, "how long");
  app.add_option("--seed", seed, "of the random pods, kills and times");
  CLI11_PARSE(app, argc, argv);
  if (std::getenv("QRM_CRI_SOCKET") == nullptr) {
    std::cerr << "qrm-chaos: no containerd; run this through scripts/chaos.sh\n";
    return EXIT_FAILURE;
  }
  const qrm::Status status = qrm::test::Run(seconds, seed);
  if (!status.ok()) {
    std::cerr << "qrm-chaos: " << qrm::MessageOf(status) << "\n";
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
