// Pods come and go, each with unique names, labels and annotations: when the last one has gone,
// qrmd and qrm-scheduler have the memory, files and series with which they began. QRM_CHURN_PODS is
// their number.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/node.h"
#include "test/e2e/scheduler_process.h"
#include "test/e2e/simulated_runtime.h"
#include "test/soak/process_use.h"
#include "test/support/ask_port.h"
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

/// Does `work` for `count` pods from number `first` on, for several at a time.
template <typename Work>
void ByClients(int first, int count, const Work& work) {
  std::atomic<int> next = first;
  std::vector<std::thread> clients;
  clients.reserve(kClients);
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&] {
      for (int pod = next++; pod < first + count; pod = next++) {
        work(pod);
      }
    });
  }
  for (std::thread& client : clients) {
    client.join();
  }
}

const std::string& BinDir() {
  static const auto* const dir =
      new std::string(std::filesystem::canonical("/proc/self/exe").parent_path());
  return *dir;
}

/// What a program has while no pod is there.
struct Holdings {
  ProcessUse use;
  std::ptrdiff_t files = 0;
  std::set<std::string> series;  ///< of its metrics, by name and labels
};

Holdings HoldingsOf(pid_t pid, const std::string& directory, int metrics_port) {
  using Files = std::filesystem::recursive_directory_iterator;
  std::istringstream metrics(AskPort(metrics_port, "GET /metrics"));
  Holdings holdings{.use = *ReadProcessUse(pid), .files = std::distance(Files(directory), Files())};
  for (std::string line; std::getline(metrics, line);) {
    if (!line.starts_with("#")) {
      holdings.series.insert(line.substr(0, line.rfind(' ')));
    }
  }
  return holdings;
}

/// `look` returns the holdings now.
template <typename Look>
void ExpectBackAt(const Holdings& before, const Look& look) {
  Holdings after;
  Await(
      [&] {
        after = look();
        return after.use.resident_mib <= before.use.resident_mib + kMostGrowthMib;
      },
      kPatience);
  std::cout << Pods() << " pods: " << before.use.resident_mib << " MiB, " << before.files
            << " files, " << before.use.descriptors << " descriptors and " << before.series.size()
            << " series before, " << after.use.resident_mib << " MiB, " << after.files << " files, "
            << after.use.descriptors << " descriptors and " << after.series.size()
            << " series after\n";
  EXPECT_LE(after.use.resident_mib, before.use.resident_mib + kMostGrowthMib);
  // At times, qrmd replaces a file.
  EXPECT_LE(after.files, before.files + 1);
  EXPECT_LE(after.use.descriptors, before.use.descriptors + 4);  // connections come and go
  EXPECT_FALSE(before.series.empty());
  EXPECT_EQ(after.series, before.series);
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
    ByClients(first, count, [this](int pod) {
      const std::string name = "pod" + std::to_string(pod);
      EXPECT_TRUE(IsOk(runtime_.RunPod({.name = name,
                                        .uid = "uid-" + name,
                                        .labels = UniqueTexts(pod),
                                        .annotations = UniqueTexts(pod),
                                        .container = {.milli_cpus = pod % 2 == 0 ? 1000 : 100,
                                                      .memory_bytes = 1 << 20,
                                                      .cpu_limit = true}})));
      EXPECT_TRUE(IsOk(runtime_.RemovePod(name)));
    });
  }

  Holdings Look() const {
    EXPECT_TRUE(IsOk(node_.Reconcile()));
    return HoldingsOf(node_.daemon_pid(), dir_ / "node", node_.metrics_port());
  }

  const TempDir dir_ = TempDir::InMemory();
  SimulatedRuntime runtime_{dir_.path(), std::chrono::seconds(60)};
  Node node_{{.bin_dir = BinDir(),
              .work_dir = dir_ / "node",
              .config = dir_ / "qrmd.yaml",
              .nri_socket = runtime_.nri_socket(),
              .cri_socket = runtime_.cri_socket(),
              .builtin_plugins = "cpu,memory",
              .metrics_address = "127.0.0.1:0"}};
};

TEST_F(DaemonChurnTest, EndsWithTheMemoryFilesAndSeriesWithWhichItBegan) {
  Churn(0, kWarmUp);
  const Holdings before = Look();
  Churn(kWarmUp, Pods());
  ExpectBackAt(before, [this] { return Look(); });
}

class SchedulerChurnTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(IsOk(scheduler_.Start())); }

  static std::string Name(int pod) { return "pod" + std::to_string(pod); }
  static std::string Key(int pod) { return "ns" + std::to_string(pod) + "/" + Name(pod); }
  void Put(int pod) {
    const nlohmann::json quantities = {{"cpu", "1"}, {"memory", std::to_string((1 << 20) + pod)}};
    scheduler_.cluster().Put(
        kPods, {{"metadata",
                 {{"namespace", "ns" + std::to_string(pod)},
                  {"name", Name(pod)},
                  {"uid", "uid-" + Name(pod)},
                  {"labels", UniqueTexts(pod)},
                  {"annotations", UniqueTexts(pod)}}},
                {"spec",
                 {{"containers",
                   nlohmann::json::array(
                       {{{"name", "c" + std::to_string(pod)},
                         {"resources", {{"requests", quantities}, {"limits", quantities}}}}})}}},
                {"status", {{"qosClass", "Guaranteed"}}}});
  }

  void AwaitFits(int pod) {
    EXPECT_TRUE(Await([&] { return scheduler_.Filter(Key(pod)).ok(); }, kPatience))
        << scheduler_.Filter(Key(pod)).status();
  }

  /// `count` pods from number `first` on: each is judged, bound to exclusive CPUs and deleted.
  void Churn(int first, int count) {
    for (int done = 0; done < count; done += kBatch) {
      ByClients(first + done, kBatch, [this](int pod) {
        Put(pod);
        AwaitFits(pod);
        EXPECT_TRUE(IsOk(scheduler_.Bind(Key(pod))));
        EXPECT_TRUE(scheduler_.cluster().Find(kPods, Key(pod))["metadata"]["annotations"].contains(
            "qrm.io/placement"));
        scheduler_.cluster().Delete(kPods, Key(pod));
      });
      // What comes before it has been read when this one is known.
      Put(kLastOfBatch);
      AwaitFits(kLastOfBatch);
      scheduler_.cluster().DropHistory();
    }
  }

  Holdings Look() {
    return HoldingsOf(scheduler_.process().pid(), dir_.path(), scheduler_.monitor_port());
  }

  static constexpr char kPods[] = "/api/v1/pods";
  static constexpr int kBatch = 500;
  static constexpr int kLastOfBatch = -1;
  const TempDir dir_ = TempDir::InMemory();
  SchedulerProcess scheduler_{dir_.path(), BinDir()};
};

TEST_F(SchedulerChurnTest, EndsWithTheMemoryFilesAndSeriesWithWhichItBegan) {
  Churn(0, kWarmUp);
  const Holdings before = Look();
  Churn(kWarmUp, Pods());
  ExpectBackAt(before, [this] { return Look(); });
}

}  // namespace
}  // namespace qrm::test::churn_test
