// Allocations are recorded once: whatever else is lost, no CPU has two owners, and no pod is
// rejected because of it.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/id_set.h"
#include "checkpoint/peer_json.h"
#include "checkpoint/sqlite/sqlite_db.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/child_process.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_plugin.h"
#include "test/support/temp_dir.h"

namespace qrm::test::one_truth_test {
namespace {

namespace fs = std::filesystem;
namespace pb = ::resourceplugin::v1alpha1;
using std::chrono::milliseconds;

constexpr char kMachine[] =
    "machine: \"synthetic:package:2 [numa] core:4 pu:1\"\n"
    "numa-memory: {0: 4294967296, 1: 4294967296}\n";
const std::string kDatabase[] = {"", "-wal"};  ///< the ends of its files' names
constexpr char kRoles[] = "roles: {database: {numa: one, share-numa-with: [database]}}\n";
constexpr char kNics[] =
    "nics: [{interface: eth0, numa-node: 0, speed-mbps: 2}]\n"
    "request: mbps\n";

PodSpec Pod(const std::string& name, int cpus, int64_t gib = 1,
            const std::string& role = "database") {
  return {
      .name = name,
      .uid = "uid-" + name,
      .labels = {{"katalyst.kubewharf.io/pod_role", role}},
      .container = {.name = "main", .milli_cpus = int64_t{cpus} * 1000, .memory_bytes = gib << 30}};
}

class OneTruthTest : public testing::Test {
 protected:
  /// qrmd with built-in cpu and memory plugins, unless `keys` says otherwise.
  void Start(const std::string& builtin, const std::string& keys = "") {
    std::ofstream(config_) << kMachine << "plugins:\n  cpu: {roles: {database: {numa: one, "
                           << "share-numa-with: [database]}}}\n  memory: {roles: {database: "
                           << "{numa: one, share-numa-with: [database]}}}\n"
                           << keys;
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = fs::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = config_,
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = builtin,
                      .reconcile_period = "300ms"});
    ASSERT_TRUE(IsOk(node_->Start(0)));
  }
  Status StartPlugin(const std::string& name) {
    const std::string file = dir_ / (name + ".yaml");
    std::ofstream(file) << kMachine << (name == "nic" ? kNics : kRoles);
    return node_->StartPlugin(name, ResourceOf(name), file);
  }
  static std::string ResourceOf(const std::string& plugin) {
    return plugin == "nic" ? "NIC" : plugin;
  }
  /// As after a lost disk: the plugin starts without a state.
  void LoseStateOf(const std::string& plugin) {
    node_->KillPlugin(plugin);
    for (const auto& entry : fs::directory_iterator(dir_ / "node/state")) {
      if (entry.path().filename().string().rfind(ResourceOf(plugin) + "_plugin.db", 0) == 0) {
        fs::remove(entry.path());
      }
    }
    ASSERT_TRUE(IsOk(StartPlugin(plugin)));
  }
  /// Copies the present state beside itself.
  void KeepStateOfCpuPlugin() {
    node_->KillPlugin("cpu");
    for (const std::string& end : kDatabase) {
      fs::copy_file(cpu_state_ + end, dir_ / ("kept" + end));
    }
    ASSERT_TRUE(IsOk(StartPlugin("cpu")));
  }
  /// The state of before a restart of the machine.
  void BringBackStateOfCpuPlugin() {
    for (const std::string& end : kDatabase) {
      fs::copy_file(dir_ / ("kept" + end), cpu_state_ + end, fs::copy_options::overwrite_existing);
    }
    fs::remove(cpu_state_ + "-shm");
    auto db = checkpoint::SqliteDb::Open(cpu_state_, {.application_id = 0x51524d50, .steps = {""}});
    ASSERT_TRUE(IsOk(db.status()));
    ASSERT_TRUE(IsOk(db->Execute("UPDATE taught SET boot = 'an earlier one'")));
  }
  bool Knows(const std::string& plugin, const std::string& pod) const {
    const auto state = node_->ExportState(plugin);
    return state.ok() && state->find("uid-" + pod) != std::string::npos;
  }
  CpuSet CpusOf(const std::string& pod) const {
    return CpuSet::Parse(
               runtime_.RunOptions(pod)["linux_container_resources"].value("cpusetCpus", ""))
        .value_or(CpuSet());
  }

  const TempDir dir_;
  const std::string config_ = dir_ / "qrmd.yaml";
  const std::string qrmd_state_ = dir_ / "node/state/qrmd";
  const std::string cpu_state_ = dir_ / "node/state/cpu_plugin.db";
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST_F(OneTruthTest, CpusOfImportedContainersBelongToThem) {
  AllocationByContainer allocations;
  allocations[{"uid-imported", "main"}]["cpu"] = ResourceAllocation{
      .oci_property = "CpusetCpus", .value = "0-2", .is_scalar_resource = true, .quantity = 3};
  std::ofstream(dir_ / "peer.json") << *checkpoint::ToPeerCheckpoint(allocations);
  runtime_.RunPodUnseen(Pod("imported", 3));
  fs::create_directories(qrmd_state_);
  const std::string qrmctl = fs::canonical("/proc/self/exe").parent_path() / "qrmctl";
  ChildProcess importing(
      {qrmctl, "checkpoint", "import", "--state-dir", qrmd_state_, dir_ / "peer.json"},
      dir_ / "import.txt");
  ASSERT_EQ(importing.Wait(), 0) << importing.Output();
  Start("cpu,memory");
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("first", 3))));
  EXPECT_FALSE(CpusOf("first").Intersects(CpuSet{0, 1, 2})) << ToString(CpusOf("first"));
}

TEST_F(OneTruthTest, ResyncRestoresExactlyTheAllocationsOfAPluginThatLostItsState) {
  Start("");
  ASSERT_TRUE(IsOk(StartPlugin("cpu")));
  ASSERT_TRUE(IsOk(StartPlugin("memory")));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("a", 1))));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("b", 2, 2))));
  ASSERT_TRUE(IsOk(runtime_.RemovePod("a")));
  ASSERT_TRUE(Await([this] { return !Knows("cpu", "a"); }));
  const CpuSet before = CpusOf("b");
  const std::string cpu_state = *node_->ExportState("cpu");
  LoseStateOf("cpu");
  LoseStateOf("memory");
  EXPECT_TRUE(Knows("cpu", "b") && Knows("memory", "b")) << "before it is asked for more";
  EXPECT_EQ(*node_->ExportState("cpu"), cpu_state);
  for (int number = 0; number < 5; ++number) {
    const std::string pod = "c" + std::to_string(number);
    ASSERT_TRUE(IsOk(runtime_.RunPod(Pod(pod, 1, 1))));
    EXPECT_FALSE(CpusOf(pod).Intersects(before));
  }
  EXPECT_EQ(CpusOf("b"), before);
  EXPECT_FALSE(runtime_.RunPod(Pod("more", 1, 1)).ok()) << "one CPU is left, for the default pool";
}

// Its state is from before pods went and others came, as when a power loss takes writes that were
// not synced.
TEST_F(OneTruthTest, ResyncRestoresTheLatestGrantsThatAPluginLostWithThePower) {
  Start("");
  ASSERT_TRUE(IsOk(StartPlugin("cpu")));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("a", 1))));
  const CpuSet first = CpusOf("a");
  KeepStateOfCpuPlugin();
  ASSERT_TRUE(IsOk(runtime_.RemovePod("a")));
  ASSERT_TRUE(Await([this] { return !Knows("cpu", "a"); }));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("b", 1))));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("a", 1))));
  ASSERT_EQ(CpusOf("b"), first) << "what a had, by the state that comes back";
  const CpuSet second = CpusOf("a");
  const std::string cpu_state = *node_->ExportState("cpu");

  node_->KillPlugin("cpu");
  BringBackStateOfCpuPlugin();
  ASSERT_TRUE(IsOk(StartPlugin("cpu")));
  EXPECT_EQ(*node_->ExportState("cpu"), cpu_state);
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("c", 1))));
  EXPECT_FALSE(CpusOf("c").Intersects(first | second)) << ToString(CpusOf("c"));
}

TEST_F(OneTruthTest, BandwidthThatALostStateForgotIsNotGivenTwice) {
  Start("", "implicit-resources: [{resource: NIC, roles: [database]}]\n");
  ASSERT_TRUE(IsOk(StartPlugin("nic")));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("a", 1))));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("b", 1))));
  LoseStateOf("nic");
  EXPECT_FALSE(runtime_.RunPod(Pod("c", 1)).ok()) << "both Mbit/s are given";
}

TEST_F(OneTruthTest, BuiltInPluginsKnowTheirAllocationsAfterKill9) {
  Start("cpu,memory");
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("a", 3, 3))));
  node_->KillDaemon();
  ASSERT_TRUE(IsOk(node_->Start(2)));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("b", 3, 3))));
  EXPECT_FALSE(CpusOf("b").Intersects(CpusOf("a")));
  for (const auto& entry : fs::directory_iterator(qrmd_state_)) {
    EXPECT_EQ(entry.path().string().find("_plugin.db"), std::string::npos) << entry.path();
  }
}

TEST_F(OneTruthTest, PoolsOfABuiltInPluginSurviveKill9OnceTheyAreAnswered) {
  std::ofstream(config_) << kMachine
                         << "plugins: {cpu: {pools: {online: {cpus: \"0-3\", roles: [web]}}}}\n";
  node_ =
      std::make_unique<Node>(Node::Options{.bin_dir = fs::canonical("/proc/self/exe").parent_path(),
                                           .work_dir = dir_ / "node",
                                           .config = config_,
                                           .nri_socket = runtime_.nri_socket(),
                                           .cri_socket = runtime_.cri_socket(),
                                           .builtin_plugins = "cpu"});
  ASSERT_TRUE(IsOk(node_->Start(1)));
  ASSERT_TRUE(IsOk(node_->Qrmctl({"pool", "set", "online=0-1"}).status()));
  node_->KillDaemon();
  ASSERT_TRUE(IsOk(node_->Start(1)));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("a", 1, 0, "web"))));
  EXPECT_EQ(CpusOf("a"), (CpuSet{0, 1}));
}

// Its record is lost, and a second plugin does not take it at first.
TEST_F(OneTruthTest, CpusOfARunningContainerWaitForItWhileItsAdoptionFails) {
  std::atomic<bool> refuses = false;
  std::atomic<int> refused = 0;
  PluginScript script;
  script.options = [](const auto&, auto&) { return OkStatus(); };
  script.allocate = [&](const pb::ResourceRequest& request,
                        pb::ResourceAllocationResponse& response) {
    if (refuses) {
      ++refused;
      return Errorf(StatusCode::kResourceExhausted, "not today");
    }
    response = pb::ResourceAllocationResponse();
    response.set_pod_uid(request.pod_uid());
    response.set_container_name(request.container_name());
    response.set_resource_name(request.resource_name());
    return OkStatus();
  };
  script.identity = IdentityFor("example.com/flaky");
  Start("",
        "implicit-resources: [{resource: example.com/flaky, annotation: flaky}]\n"
        "required-plugins: [cpu, example.com/flaky]\n");
  ASSERT_TRUE(IsOk(StartPlugin("cpu")));
  const ScriptedPlugin flaky(dir_ / "node/plugins/flaky.sock", script);
  ASSERT_TRUE(Await([this] { return node_->ListPlugins()->size() == 2; }));
  PodSpec pod = Pod("a", 3);
  pod.annotations["flaky"] = "yes";
  ASSERT_TRUE(IsOk(runtime_.RunPod(pod)));

  refuses = true;
  node_->KillDaemon();
  fs::remove_all(qrmd_state_);
  ASSERT_TRUE(IsOk(node_->Start(2)));
  ASSERT_TRUE(Await([&] { return refused > 0; }));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("b", 3))));
  EXPECT_FALSE(CpusOf("b").Intersects(CpusOf("a")));
}

// The state on disk is lost with its built-in plugins' grants.
TEST_F(OneTruthTest, RunningContainersKeepTheirCpusWhenTheCheckpointIsLost) {
  Start("cpu,memory");
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("first", 1))));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("a", 2))));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("b", 3))));
  ASSERT_TRUE(IsOk(runtime_.RemovePod("first")));
  const CpuSet a = CpusOf("a");
  const CpuSet b = CpusOf("b");
  node_->KillDaemon();
  fs::remove_all(qrmd_state_);
  ASSERT_TRUE(IsOk(node_->Start(2)));
  ASSERT_TRUE(Await([this] {
    const auto pods = node_->ListPods();
    return pods.ok() && pods->pods_size() == 2;
  }));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("c", 1))));
  EXPECT_EQ(CpusOf("a"), a);
  EXPECT_EQ(CpusOf("b"), b);
  EXPECT_FALSE(CpusOf("c").Intersects(a | b));
}

// System calls of the whole process, counted by strace.
TEST_F(OneTruthTest, AdmissionWithBuiltInPluginsCostsOneSync) {
  constexpr char kStrace[] = "/usr/bin/strace";
  if (!fs::exists(kStrace)) {
    GTEST_SKIP() << "strace is missing: scripts/deps.sh installs it";
  }
  Start("cpu,memory,nic");
  const std::string trace = dir_ / "trace";
  const auto syncs = [&trace] {
    std::ifstream lines(trace);
    std::string line;
    int count = 0;
    while (std::getline(lines, line)) {
      count += line.find("sync(") != std::string::npos ? 1 : 0;
    }
    return count;
  };
  const ChildProcess tracer({kStrace, "-f", "-e", "trace=fsync,fdatasync,sync_file_range", "-o",
                             trace, "-p", std::to_string(node_->daemon_pid())},
                            dir_ / "strace.out");
  const auto run_and_remove = [this](const std::string& pod) {
    EXPECT_TRUE(IsOk(runtime_.RunPod(Pod(pod, 1))));
    EXPECT_TRUE(IsOk(runtime_.RemovePod(pod)));
    return Await([this] { return node_->ListPods()->pods_size() == 0; });
  };
  int warm = 0;
  const bool traced = Await([&] {
    EXPECT_TRUE(run_and_remove("warm" + std::to_string(warm++)));
    return syncs() > 0;
  });
  if (!traced && tracer.Output().find("ptrace") != std::string::npos) {
    GTEST_SKIP() << "tracing is not permitted: " << tracer.Output();
  }
  ASSERT_TRUE(traced) << tracer.Output();
  ASSERT_TRUE(run_and_remove("last"));  // the tracer has all threads by now
  const int before = syncs();
  constexpr int kPods = 6;
  for (int number = 0; number < kPods; ++number) {
    ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("pod" + std::to_string(number), 1))));
  }
  EXPECT_EQ(syncs() - before, kPods);
}

// A plugin without the SDK that reports allocations of sixty unknown pods and does not answer when
// it is to release them.
TEST_F(OneTruthTest, AdmissionsGoOnWhileASlowPluginIsRelievedOfManyOrphans) {
  Start("cpu");
  std::promise<void> end;
  std::atomic<int> asked = 0;
  PluginScript script;
  script.reconcile = [&](const auto&, pb::GetResourcesAllocationResponse& response) {
    for (int number = 0; number < 60; ++number) {
      pb::ContainerResources& pod =
          (*response.mutable_pod_resources())["uid-orphan" + std::to_string(number)];
      pb::ResourceAllocation& main = (*pod.mutable_container_resources())["main"];
      pb::ResourceAllocationInfo& slow = (*main.mutable_resource_allocation())["example.com/slow"];
      slow.set_is_scalar_resource(true);
      slow.set_allocated_quantity(1);
    }
    return OkStatus();
  };
  script.remove_pod = [&asked, ended = end.get_future().share()](const auto&, auto&) {
    ++asked;
    ended.wait();
    return OkStatus();
  };
  script.identity = IdentityFor("example.com/slow");
  const ScriptedPlugin plugin(dir_ / "node/plugins/slow.sock", script);
  EXPECT_TRUE(Await([&] { return asked > 0; }));
  constexpr int kPods = 10;
  int soon = 0;  // for most pods, since other work may keep the machine busy
  for (int number = 0; number < kPods; ++number) {
    EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("pod" + std::to_string(number), 0, 0, ""))));
    soon += runtime_.last_creation() < milliseconds(150) ? 1 : 0;
  }
  EXPECT_GT(soon, kPods / 2);
  end.set_value();
}

}  // namespace
}  // namespace qrm::test::one_truth_test
