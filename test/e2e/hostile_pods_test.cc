// Pods whose labels and annotations attack the node: it continues to place others, and does not
// grow.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/mutex.h"
#include "api/id_set.h"
#include "api/proto/core/v1/pod.pb.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/soak/process_use.h"
#include "test/support/before_others.h"
#include "test/support/is_ok.h"
#include "test/support/rounds.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/stall_meter.h"
#include "test/support/temp_dir.h"

namespace qrm::test::hostile_pods_test {
namespace {

using std::chrono::milliseconds;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kLevel[] = "katalyst.kubewharf.io/qos_level";
constexpr char kCpu[] = "katalyst.kubewharf.io/cpu_enhancement";
constexpr char kMemory[] = "katalyst.kubewharf.io/memory_enhancement";
constexpr char kSkip[] = "katalyst.kubewharf.io/skip_qrm_admit";
constexpr char kExclusive[] = R"({"numa_binding": "true", "numa_exclusive": "true"})";
/// The size that Kubernetes accepts in annotations.
constexpr std::size_t kMuch = 250'000;
constexpr milliseconds kSoon{100};

// Two NUMA nodes of four CPUs and 8 GiB, of which CPU 0 is reserved. Pods in `trusted` may do
// anything.
constexpr char kConfig[] = R"(
machine: "synthetic:package:2 [numa] core:4 pu:1"
numa-memory: {0: 8Gi, 1: 8Gi}
permissions:
  - {namespaces: [trusted], allow: [everything]}
plugins:
  cpu: {reserved-cpus: "0", exclusive-node-percent: 50}
)";

class HostilePodsTest : public testing::Test {
 protected:
  /// `nice`: how qrmd's own threads are scheduled.
  explicit HostilePodsTest(const std::string& nice = "-20")
      : node_({.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
               .work_dir = dir_ / "node",
               .config = dir_ / "qrmd.yaml",
               .nri_socket = runtime_.nri_socket(),
               .cri_socket = runtime_.cri_socket(),
               .builtin_plugins = "cpu,memory",
               .flags = {"--admission-deadline=1m", "--plugin-call-deadline=10s",
                         "--nice=" + nice}}) {
    std::ofstream(dir_ / "qrmd.yaml") << kConfig;
  }

  void SetUp() override {
    ASSERT_TRUE(IsOk(node_.Start(2)));
    ASSERT_TRUE(IsOk(RunHonest()));
  }
  void TearDown() override { EXPECT_TRUE(node_.DaemonRuns()) << "it died of a pod"; }

  static PodSpec Pod(const std::string& name, StringMap annotations,
                     const ContainerSpec& container = {}) {
    return {.name = name,
            .uid = "uid-" + name,
            .annotations = std::move(annotations),
            .container = container};
  }
  std::string Refusal(const PodSpec& pod) {
    const Status run = runtime_.RunPod(pod);
    EXPECT_FALSE(run.ok()) << pod.name << " was admitted";
    return MessageOf(run);
  }
  std::string CpusOf(const std::string& pod) const {
    return runtime_.RunOptions(pod)["linux_container_resources"].value("cpusetCpus", "");
  }
  /// An ordinary pod of another tenant starts, is placed and ends.
  Status RunHonest() {
    const PodSpec pod = Pod("honest" + std::to_string(honest_++), {}, {.milli_cpus = 500});
    QRM_RETURN_IF_ERROR(runtime_.RunPod(pod));
    {
      const MutexLock lock(mutex_);
      waits_.push_back(runtime_.CreationOf(pod.name));
    }
    EXPECT_NE(CpusOf(pod.name), "");
    return runtime_.RemovePod(pod.name);
  }
  /// The times in which each honest pod waited for its admission.
  std::vector<std::pair<StallMeter::Time, StallMeter::Time>> TakeWaits() {
    const MutexLock lock(mutex_);
    return std::exchange(waits_, {});
  }

  const TempDir dir_ = TempDir::InMemory();  // syncs of other disks are not measured
  // All deadlines are longer than by default: the wait of pods is measured, also on a busy machine.
  SimulatedRuntime runtime_{dir_.path(), std::chrono::seconds(60)};
  Node node_;
  std::atomic<int> honest_ = 0;

 private:
  Mutex mutex_;
  std::vector<std::pair<StallMeter::Time, StallMeter::Time>> waits_ QRM_GUARDED_BY(mutex_);
};

TEST_F(HostilePodsTest, AnAnnotationThatIsNestedDeeplyIsRejected) {
  const std::string open(kMuch / 2, '[');
  const std::string nested = "{\"a\":" + open + std::string(kMuch / 2, ']') + "}";
  EXPECT_THAT(Refusal(Pod("nested", {{kCpu, nested}})),
              HasSubstr("[[... (250006 bytes)' is nested more than 4 deep"));
  const std::string shorter = "{\"a\":" + std::string(1000, '[') + std::string(1000, ']') + "}";
  EXPECT_THAT(Refusal(Pod("shorter", {{kMemory, shorter}})), HasSubstr("nested more than 4 deep"));
  EXPECT_TRUE(IsOk(RunHonest()));
}

TEST_F(HostilePodsTest, PodsThatRequestNothingLockNoNumaNode) {
  for (const char* name : {"first", "second"}) {
    EXPECT_TRUE(
        IsOk(runtime_.RunPod(Pod(name, {{kLevel, "dedicated_cores"}, {kMemory, kExclusive}}))));
  }
  for (const char* name : {"third", "fourth"}) {
    EXPECT_THAT(Refusal(Pod(name, {{kLevel, "dedicated_cores"}, {kMemory, kExclusive}},
                            {.milli_cpus = 1000, .memory_bytes = 1})),
                HasSubstr("exclusive-node-percent"));
  }
  EXPECT_TRUE(IsOk(runtime_.RunPod(
      Pod("database", {{kLevel, "dedicated_cores"}, {kMemory, kExclusive}},
          {.milli_cpus = 2000, .memory_bytes = int64_t{5} << 30, .cpu_limit = true}))));
  EXPECT_TRUE(IsOk(RunHonest()));
}

TEST_F(HostilePodsTest, OnlyNamespacesThatMayTakeReservedCpusOrOptOut) {
  EXPECT_THAT(Refusal(Pod("system", {{kLevel, "system_cores"}}, {.milli_cpus = 100})),
              HasSubstr("the default rule of permissions does not allow reserved-cpus in namespace "
                        "default (annotation katalyst.kubewharf.io/qos_level=system_cores asks for "
                        "it)"));
  EXPECT_THAT(Refusal(Pod("skip", {{kSkip, "true"}})),
              HasSubstr("does not allow opt-out in namespace default"));
  PodSpec trusted = Pod("trusted", {{kLevel, "system_cores"}}, {.milli_cpus = 100});
  trusted.pod_namespace = "trusted";
  EXPECT_TRUE(IsOk(runtime_.RunPod(trusted)));
  EXPECT_EQ(CpusOf("trusted"), "0");
  EXPECT_THAT(node_.Qrmctl({"permissions", "--namespace", "trusted"}).value_or(""),
              HasSubstr("opt-out,reserved-cpus,own-cpus,numa-nodes,network-namespaces"));
  EXPECT_THAT(node_.Qrmctl({"permissions", "--namespace", "default"}).value_or(""),
              Not(HasSubstr("opt-out")));
}

TEST_F(HostilePodsTest, OptedOutPodsStayOffExclusiveAndReservedCpus) {
  PodSpec left_alone = Pod("agent", {{kSkip, "true"}}, {.milli_cpus = 100});
  left_alone.pod_namespace = "trusted";
  ASSERT_TRUE(IsOk(runtime_.RunPod(left_alone)));
  EXPECT_EQ(CpusOf("agent"), "1-7");
  ASSERT_TRUE(IsOk(runtime_.RunPod(
      Pod("owner", {{kLevel, "dedicated_cores"}}, {.milli_cpus = 2000, .memory_bytes = 1 << 20}))));
  const std::string owned = CpusOf("owner");
  ASSERT_TRUE(IsOk(node_.Reconcile()));
  PodSpec later = Pod("kube-proxy", {}, {.milli_cpus = 100});
  later.pod_namespace = "kube-system";
  ASSERT_TRUE(IsOk(runtime_.RunPod(later)));
  for (const char* pod : {"agent", "kube-proxy"}) {
    const CpuSet cpus = CpuSet::Parse(CpusOf(pod)).value_or(CpuSet());
    EXPECT_FALSE(cpus.Intersects(*CpuSet::Parse(owned))) << pod << " has " << CpusOf(pod);
    EXPECT_FALSE(cpus.Has(0)) << pod << " is on the reserved CPU";
    EXPECT_EQ(cpus.Count(), 5) << pod;
  }
}

constexpr char kTurnsAround[] = "\u202e";

/// Whether a terminal would do nothing but print `text`.
bool IsPlain(const std::string& text) {
  return text.find(kTurnsAround) == std::string::npos &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return c == '\n' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
         });
}

TEST_F(HostilePodsTest, ControlAndFormatCharactersReachNoLogTableOrJson) {
  const std::string forged =
      std::string("\x1b[2J\r\n2026-01-01T00:00:00.000Z E \"all is lost\"\x07") + kTurnsAround;
  EXPECT_NE(Refusal(Pod("forger", {{kLevel, forged}})), "");
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("quiet", {{"note", forged}, {forged, "note"}}))));
  std::ifstream log(dir_ / "node/logs/qrmd.log");
  const std::string logged{std::istreambuf_iterator<char>(log), {}};
  EXPECT_THAT(logged, HasSubstr("forger"));
  EXPECT_TRUE(IsPlain(logged)) << logged;
  EXPECT_THAT(logged, Not(HasSubstr("\n2026-01-01")));
  for (const char* command : {"refusals", "pods"}) {
    for (const char* output : {"table", "json", "yaml"}) {
      const std::string shown =
          node_.Qrmctl({command, std::string("--output=") + output}).value_or("\x1b");
      EXPECT_TRUE(IsPlain(shown)) << command << " as " << output << ": " << shown;
    }
  }
}

TEST_F(HostilePodsTest, AnnotationsThatNoListNamesReachNoClientOfPodResources) {
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("secretive", {{"note", "a secret"}}, {.milli_cpus = 100}))));
  const auto listed = node_.ListPodResources();
  ASSERT_TRUE(IsOk(listed.status()));
  ASSERT_EQ(listed->pod_resources_size(), 1);
  EXPECT_THAT(listed->DebugString(), Not(HasSubstr("secret\"")));
}

/// A node whose kubelet reports owners and priority classes.
class ForgedOwnerTest : public testing::Test {
 protected:
  ForgedOwnerTest() { std::ofstream(dir_ / "qrmd.yaml") << kConfig; }

  /// A pod that claims to be a critical pod of a DaemonSet, and asks for exclusive CPUs.
  CpuSet CpusOfCritical(const std::string& pod_namespace) {
    const std::string name = "agent-of-" + pod_namespace;
    const PodSpec spec{.name = name,
                       .uid = "uid-" + name,
                       .pod_namespace = pod_namespace,
                       .annotations = {{kLevel, "dedicated_cores"}},
                       .container = {.name = "main", .milli_cpus = 2000}};
    ::k8s::io::api::core::v1::Pod pod;
    pod.ParseFromString(PodMessage(spec.uid, name, "2"));
    pod.mutable_metadata()->set_namespace_(pod_namespace);
    (*pod.mutable_metadata()->mutable_annotations())[kLevel] = "dedicated_cores";
    pod.mutable_spec()->set_priority_class_name("system-node-critical");
    auto& owner = *pod.mutable_metadata()->add_owner_references();
    owner.set_kind("DaemonSet");
    owner.set_controller(true);
    kubelet_.Put(spec.uid, pod.SerializeAsString());
    EXPECT_TRUE(IsOk(runtime_.RunPod(spec)));
    const auto options = runtime_.RunOptions(name);
    return CpuSet::Parse(options["linux_container_resources"].value("cpusetCpus", ""))
        .value_or(CpuSet());
  }

  const TempDir dir_;
  ScriptedKubelet kubelet_{dir_ / "pods-api.sock"};
  SimulatedRuntime runtime_{dir_.path()};
  Node node_{{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
              .work_dir = dir_ / "node",
              .config = dir_ / "qrmd.yaml",
              .nri_socket = runtime_.nri_socket(),
              .cri_socket = runtime_.cri_socket(),
              .builtin_plugins = "cpu,memory",
              .flags = {"--kubelet-pods-socket=" + (dir_ / "pods-api.sock")}}};
};

TEST_F(ForgedOwnerTest, OptsOutOnlyWhereANamespaceMay) {
  ASSERT_TRUE(IsOk(node_.Start(2)));
  const CpuSet forged = CpusOfCritical("default");
  EXPECT_EQ(forged.Count(), 2) << "it is placed as others are";
  const CpuSet left_alone = CpusOfCritical("kube-system");
  EXPECT_EQ(left_alone.Count(), 5);
  EXPECT_FALSE(left_alone.Intersects(forged));
}

/// The `number`th of many hostile pods, each of some kind.
PodSpec Hostile(int number) {
  const std::string much(kMuch, 'x');
  PodSpec pod{.name = "hostile" + std::to_string(number),
              .uid = "uid-hostile" + std::to_string(number),
              .container = {.milli_cpus = 100}};
  if (number % 50 == 0) {
    for (int i = 0; i < 8000; ++i) {
      pod.annotations["key" + std::to_string(i)] = "0123456789012345678";
    }
    return pod;
  }
  switch (number % 5) {
    case 0:
      pod.annotations = {{kLevel, much}};
      break;
    case 1:
      pod.annotations = {{kCpu, much}};
      break;
    case 2:
      pod.annotations = {{kLevel, "shared_cores"}, {kCpu, R"({"cpuset_pool": ")" + much + "\"}"}};
      break;
    case 3:
      pod.annotations = {{kSkip, much}};
      break;
    default:
      pod.annotations = {{"kubernetes.io/pod-role", much}, {"note", "\x1b[2J"}};
  }
  return pod;
}

/// What may grow, in MiB.
struct Use {
  double memory = 0;
  double checkpoint = 0;
  double log = 0;
};

class ManyHostilePodsTest : private BeforeOthers, public HostilePodsTest {
 protected:
  static constexpr int kAllPods = 5000;
  static constexpr int kPods = Rounds(kAllPods);
  static constexpr int kAttackers = 4;
  static constexpr std::size_t kAtOnce = 5;  // of each attacker's pods
  static constexpr int kHonestEvery = 10;    // of each attacker's pods
  static constexpr int kHonest = kAttackers * (kPods / kAttackers / kHonestEvery);
  static constexpr int kRounds = 3;

  // In real time as the attackers: other work of the machine is not measured.
  ManyHostilePodsTest() : HostilePodsTest("0") {}

  /// The wait of each honest pod, without the time in which the machine was stalled.
  std::vector<milliseconds> Waited() {
    std::vector<milliseconds> waited;
    for (const auto& [begin, end] : TakeWaits()) {
      waited.push_back(std::chrono::ceil<milliseconds>(end - begin - stalls_.Within(begin, end)));
    }
    std::sort(waited.begin(), waited.end());
    return waited;
  }

  /// Runs every fourth hostile pod from `first` on, as far as it is admitted, and now and then an
  /// honest pod.
  void Attack(int first) {
    std::deque<std::string> running;
    int made = 0;
    for (int number = first; number < kPods; number += kAttackers) {
      const PodSpec pod = Hostile(number);
      if (runtime_.RunPod(pod).ok()) {
        running.push_back(pod.name);
      }
      if (running.size() > kAtOnce) {
        EXPECT_TRUE(IsOk(runtime_.RemovePod(running.front())));
        running.pop_front();
      }
      if (++made % kHonestEvery == 0) {
        EXPECT_TRUE(IsOk(RunHonest()));
      }
    }
    for (const std::string& name : running) {
      EXPECT_TRUE(IsOk(runtime_.RemovePod(name)));
    }
  }
  /// Runs all hostile pods, and the honest pods beside them.
  void AttackAll() {
    std::vector<std::future<void>> attackers;
    attackers.reserve(kAttackers);
    for (int first = 0; first < kAttackers; ++first) {
      attackers.push_back(std::async(std::launch::async, [this, first] { Attack(first); }));
    }
  }
  Use Measure() const {
    const DiskUse disk = ReadDiskUse(dir_ / "node/state");
    const auto log = std::filesystem::file_size(dir_ / "node/logs/qrmd.log");
    return {.memory = ReadProcessUse(node_.daemon_pid())->resident_mib,
            .checkpoint = disk.databases_mib + disk.logs_mib,
            .log = static_cast<double>(log) / (1 << 20)};
  }

  const StallMeter stalls_;
};

TEST_F(ManyHostilePodsTest, KeepNoPodWaitingAndFillNothing) {
  const Use before = Measure();
  std::vector<milliseconds> took;
  // An attack has its effect each time; the machine's other work does not.
  for (int round = 0; round < kRounds && (took.empty() || took.back() > kSoon); ++round) {
    AttackAll();
    took = Waited();
    ASSERT_THAT(took, SizeIs(Ge(kHonest)));
    if (kPods < kAllPods) {
      return;  // sanitized, where time and memory are not qrmd's own
    }
  }
  const auto within = [&](std::size_t percent) { return took[(took.size() - 1) * percent / 100]; };
  EXPECT_LE(took.back().count(), kSoon.count()) << "ms";
  const Use after = Measure();
  EXPECT_LT(after.memory - before.memory, 64) << "MiB";
  EXPECT_LT(after.checkpoint - before.checkpoint, 64) << "MiB";
  EXPECT_LT(after.log - before.log, 32) << "MiB";
  std::cout << took.size() << " honest pods: " << within(50).count() << " ms in the middle, "
            << within(99).count() << " ms for 99 of 100, " << within(100).count()
            << " ms at most; grown by " << after.memory - before.memory << " MiB of memory, "
            << after.checkpoint - before.checkpoint << " of checkpoint, " << after.log - before.log
            << " of log\n";
}

}  // namespace
}  // namespace qrm::test::hostile_pods_test
