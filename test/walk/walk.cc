// test_walk QRMD DIRECTORY: plays one container's creation, its removal and an idle reconcile
// several times with a qrmd that was compiled with -finstrument-functions, and writes what it
// recorded to DIRECTORY, a file for each.
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fmt/format.h>

#include "api/base/check.h"
#include "api/proto/core/v1/pod.pb.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/temp_dir.h"
#include "test/walk/trace.h"

namespace qrm::test {
namespace {

constexpr int kTurns = 5;  // other work falls into some of them
constexpr std::chrono::seconds kPeriod{3};
constexpr std::chrono::milliseconds kPause{400};
constexpr char kConfig[] = R"(machine: "synthetic:package:2 [numa] core:6 pu:2"
numa-memory: {0: 4Gi, 1: 4Gi}
topology-policy: best-effort
realtime-priority: 0
kubelet-state-dir: ""
observer-grace: 5m
admission-deadline: 10s
plugin-call-deadline: 9s
resource-names-map: {qrm.io/nic: NIC}
plugins:
  cpu: {reserved-cpus: "0,12", static: true}
  memory: {roles: {database: {numa: one, share-numa-with: ["*"]}}}
  nic:
    request: mbps
    nics:
      - {interface: eth0, numa-node: 0, ipv4: 192.0.2.1, speed-mbps: 1000}
      - {interface: eth1, numa-node: 1, ipv4: 192.0.2.2, speed-mbps: 1000}
)";

void Must(const Status& status) {
  if (!status.ok()) {
    std::cerr << "test_walk: " << MessageOf(status) << "\n";
    std::exit(EXIT_FAILURE);
  }
}

/// The trace in `file`, which it makes.
Trace& Map(const std::string& file) {
  const int opened = ::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  QRM_CHECK(opened >= 0 && ::ftruncate(opened, sizeof(Trace)) == 0);
  void* const mapped =
      ::mmap(nullptr, sizeof(Trace), PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  QRM_CHECK(mapped != MAP_FAILED);
  return *static_cast<Trace*>(mapped);
}

PodSpec Pod(int number) {
  const std::string name = fmt::format("database-{}", number);
  return {.name = name,
          .uid = fmt::format("uid-{}", name),
          .labels = {{"katalyst.kubewharf.io/pod_role", "database"}},
          .container = {
              .name = "main", .milli_cpus = 2000, .memory_bytes = 64 << 20, .cpu_limit = true}};
}

/// As kubelet reports it: with all three resources.
std::string MessageFor(const PodSpec& spec) {
  ::k8s::io::api::core::v1::Pod pod;
  QRM_CHECK(pod.ParseFromString(PodMessage(spec.uid, spec.name, "2")));
  pod.mutable_metadata()->mutable_labels()->insert(spec.labels.begin(), spec.labels.end());
  auto& resources = *pod.mutable_spec()->mutable_containers(0)->mutable_resources();
  for (auto* const amounts : {resources.mutable_requests(), resources.mutable_limits()}) {
    (*amounts)["cpu"].set_string("2");
    (*amounts)["memory"].set_string(std::to_string(spec.container.memory_bytes));
    (*amounts)["qrm.io/nic"].set_string("100");
  }
  return pod.SerializeAsString();
}

/// Records what happens in `trace` while `step` runs, which returns the part that counts.
using Times =
    std::pair<std::chrono::steady_clock::time_point, std::chrono::steady_clock::time_point>;
template <typename Step>
void Play(Trace& trace, const std::string& file, const Step& step) {
  trace.count = 0;
  trace.is_on = true;
  const Times times = step();
  trace.is_on = false;
  QRM_CHECK(trace.count < Trace::kMost);
  std::ofstream out(file);
  for (uint64_t i = 0; i < trace.count; ++i) {
    const TraceEvent& event = trace.events[i];
    if (event.time >= times.first.time_since_epoch().count() &&
        event.time <= times.second.time_since_epoch().count()) {
      out << fmt::format("{:x} {}\n", event.address, event.thread);
    }
  }
}

/// The time in which `step` ran, and what it left to be done.
template <typename Step>
Times Took(const Step& step, std::chrono::milliseconds rest) {
  const auto begin = std::chrono::steady_clock::now();
  step();
  std::this_thread::sleep_for(rest);
  return {begin, std::chrono::steady_clock::now()};
}

int Run(const std::string& qrmd, const std::string& directory) {
  const TempDir dir;
  std::filesystem::create_directories(directory);
  Trace& trace = Map(dir / "trace");
  SimulatedRuntime runtime(dir.path(), std::chrono::seconds(30));
  ScriptedKubelet kubelet(dir / "kubelet.sock");
  std::ofstream(dir / "qrmd.yaml") << kConfig << "kubelet-pods-socket: " << dir / "kubelet.sock\n";
  Node node({.bin_dir = std::filesystem::path(qrmd).parent_path(),
             .daemon = std::filesystem::path(qrmd).filename(),
             .work_dir = dir / "node",
             .config = dir / "qrmd.yaml",
             .nri_socket = runtime.nri_socket(),
             .cri_socket = runtime.cri_socket(),
             .builtin_plugins = "cpu,memory,nic",
             .reconcile_period = fmt::format("{}s", kPeriod.count())});
  ::setenv("QRM_WALK_FILE", (dir / "trace").c_str(), 1);
  ::setenv("LD_PRELOAD",
           (std::filesystem::canonical("/proc/self/exe").parent_path() / "libqrm-walk-recorder.so")
               .c_str(),
           1);
  Must(node.Start(3));
  ::unsetenv("LD_PRELOAD");
  QRM_CHECK(Await([&] { return node.HasFollowedKubelet(); }));
  const auto file = [&](const char* step, int turn) {
    return fmt::format("{}/{}.{}", directory, step, turn);
  };
  for (int turn = 0; turn <= kTurns; ++turn) {  // the first one warms up
    const PodSpec pod = Pod(turn);
    const std::string message = MessageFor(pod);
    kubelet.Put(pod.uid, message);
    kubelet.Send(::v1alpha1::EVENT_TYPE_ADDED, message);
    std::this_thread::sleep_for(kPause);
    Play(trace, file("creation", turn), [&] {
      Must(runtime.RunPod(pod));
      return runtime.CreationOf(pod.name);
    });
    if (turn == 0) {
      std::this_thread::sleep_for(2 * kPeriod);
      for (int tick = 1; tick <= kTurns; ++tick) {
        Play(trace, file("reconcile", tick), [] { return Took([] {}, kPeriod); });
      }
    }
    std::this_thread::sleep_for(kPause);
    Play(trace, file("removal", turn),
         [&] { return Took([&] { Must(runtime.RemovePod(pod.name)); }, kPause); });
    kubelet.Forget(pod.uid);
    kubelet.Send(::v1alpha1::EVENT_TYPE_DELETED, message);
  }
  for (const char* step : {"creation", "removal"}) {
    std::filesystem::remove(file(step, 0));
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace qrm::test

// NOLINTNEXTLINE(bugprone-exception-escape): what fails here shall end the program.
int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: test_walk QRMD DIRECTORY\n";
    return EXIT_FAILURE;
  }
  return qrm::test::Run(argv[1], argv[2]);
}
