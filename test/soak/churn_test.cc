// Pods come and go, each with unique labels and annotations: their memory is free when the last one
// has gone. QRM_CHURN_PODS is their number.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include <malloc.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scheduler/cache/cluster_cache.h"
#include "scheduler/registry/resource_types.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/soak/process_use.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/rounds.h"
#include "test/support/temp_dir.h"

namespace qrm::test::churn_test {
namespace {

constexpr double kMostGrowthMib = 8;
constexpr int kPodsByDefault = 20'000;
/// So many pods come and go before the measurement: caches and histories are full then.
constexpr int kWarmUp = 4000;
constexpr int kClients = 4;
constexpr int kLabels = 20;
/// Freed memory goes back to the kernel some time later.
constexpr std::chrono::seconds kPatience{60};

int Pods() {
  return RoundsBy("QRM_CHURN_PODS", kPodsByDefault);
}

StringMap UniqueTexts(int pod) {
  StringMap texts;
  for (int i = 0; i < kLabels; ++i) {
    texts[fmt::format("key-{}-{}", pod, i)] =
        fmt::format("value-of-{}-that-no-other-has-{}", pod, i);
  }
  return texts;
}

class DaemonChurnTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(dir_ / "qrmd.yaml") << "machine: \"synthetic:package:2 [numa] core:32 pu:1\"\n"
                                         "numa-memory: {0: 64Gi, 1: 64Gi}\n"
                                         "plugins: {cpu: {static: true}}\n";
    ASSERT_TRUE(IsOk(node_.Start(2)));
  }

  /// `count` pods from number `first` on, every other one with exclusive CPUs.
  void Churn(int first, int count) {
    std::atomic<int> next = first;
    std::vector<std::thread> clients;
    clients.reserve(kClients);
    for (int client = 0; client < kClients; ++client) {
      clients.emplace_back([&] {
        for (int pod = next++; pod < first + count; pod = next++) {
          const std::string name = "pod" + std::to_string(pod);
          EXPECT_TRUE(IsOk(runtime_.RunPod({.name = name,
                                            .uid = "uid-" + name,
                                            .labels = UniqueTexts(pod),
                                            .annotations = UniqueTexts(pod),
                                            .container = {.milli_cpus = pod % 2 == 0 ? 1000 : 100,
                                                          .memory_bytes = 1 << 20,
                                                          .cpu_limit = true}})));
          EXPECT_TRUE(IsOk(runtime_.RemovePod(name)));
        }
      });
    }
    for (std::thread& client : clients) {
      client.join();
    }
  }

  ProcessUse Use() const { return *ReadProcessUse(node_.daemon_pid()); }

  const TempDir dir_ = TempDir::InMemory();
  SimulatedRuntime runtime_{dir_.path(), std::chrono::seconds(60)};
  Node node_{{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
              .work_dir = dir_ / "node",
              .config = dir_ / "qrmd.yaml",
              .nri_socket = runtime_.nri_socket(),
              .cri_socket = runtime_.cri_socket(),
              .builtin_plugins = "cpu,memory"}};
};

TEST_F(DaemonChurnTest, EndsWithTheMemoryAndFilesWithWhichItBegan) {
  Churn(0, kWarmUp);
  ASSERT_TRUE(IsOk(node_.Reconcile()));
  const ProcessUse before = Use();
  Churn(kWarmUp, Pods());
  ASSERT_TRUE(IsOk(node_.Reconcile()));
  EXPECT_TRUE(
      Await([&] { return Use().resident_mib <= before.resident_mib + kMostGrowthMib; }, kPatience));
  const ProcessUse after = Use();
  std::cout << Pods() << " pods: " << before.resident_mib << " MiB before, " << after.resident_mib
            << " MiB after\n";
  EXPECT_LE(after.resident_mib, before.resident_mib + kMostGrowthMib);
  EXPECT_LE(after.descriptors, before.descriptors + 1);
}

constexpr char kNodeConfig[] = R"({machine: "synthetic:package:2 [numa] core:4 pu:1",
    plugins: {cpu: {static: true, reserved-cpus: "0"}}})";

double AllocatedMib() {
  constexpr double kMebibyte = 1 << 20;
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd) / kMebibyte;
}

TEST(SchedulerCacheChurnTest, EndsWithTheMemoryWithWhichItBegan) {
  const scheduler::HandleRegistry handles = scheduler::RegisterResources({"numa"});
  auto made = scheduler::ClusterCache::Make(handles);
  ASSERT_TRUE(IsOk(made.status()));
  scheduler::ClusterCache& cache = **made;
  cache.ReplaceNodes({{.name = "n1",
                       .allocatable = {{"cpu", 8}, {"memory", 8e9}},
                       .annotations = {{"qrm.io/node-config", kNodeConfig}}}},
                     "1");
  const auto churn = [&](int first, int count) {
    for (int i = first; i < first + count; ++i) {
      const std::string name = "pod" + std::to_string(i);
      cache.SetPod({.uid = "uid-" + name,
                    .pod_namespace = "ns" + std::to_string(i),
                    .name = name,
                    .node = "n1",
                    .qos_class = "Guaranteed",
                    .labels = UniqueTexts(i),
                    .annotations = UniqueTexts(i),
                    .containers = {{.name = "c" + std::to_string(i),
                                    .requests = {{"cpu", 1 + i % 3}, {"memory", 1e6 + i}}}}});
      cache.Publish();
      cache.DeletePod("uid-" + name, "");
    }
    cache.Publish();
  };
  churn(0, kWarmUp);
  const double before = AllocatedMib();
  churn(kWarmUp, Pods());
  const double after = AllocatedMib();
  std::cout << Pods() << " pods: " << before << " MiB before, " << after << " MiB after\n";
  EXPECT_LE(after, before + kMostGrowthMib);
}

}  // namespace
}  // namespace qrm::test::churn_test
