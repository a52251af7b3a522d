// Whether running containers have their promised values, on a simulated runtime.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/proto/core/v1/pod.pb.h"
#include "test/e2e/node.h"
#include "test/e2e/runtime_messages.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/scripted_plugin.h"
#include "test/support/temp_dir.h"

namespace qrm::test::applied_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kQuota[] = "example.com/quota";
constexpr char kSlow[] = "example.com/slow";
constexpr char kRoleLabel[] = "katalyst.kubewharf.io/pod_role";
// All pods run in pool "online"; pods of role "limited" get a CPU quota too.
constexpr char kConfig[] =
    "machine: \"synthetic:package:1 [numa] core:8 pu:1\"\n"
    "plugins: {cpu: {default-pool: online, pools: {online: {cpus: \"0-3\"}}}}\n"
    "implicit-resources:\n"
    "  - {resource: example.com/quota, roles: [limited]}\n"
    "  - {resource: example.com/slow, roles: [slow]}\n";

class AppliedTest : public testing::Test {
 protected:
  void Start(std::vector<std::string> flags = {}) {
    std::ofstream(dir_ / "qrmd.yaml") << kConfig;
    flags.push_back("--cgroup-root=" + cgroups_);
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = fs::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = "cpu",
                      .reconcile_period = "100ms",
                      .flags = std::move(flags)});
    ASSERT_TRUE(IsOk(node_->Start(1)));
  }
  std::string Cpus(const std::string& pod) {
    const auto options = runtime_.RunOptions(pod);
    const auto resources = options.find("linux_container_resources");
    return resources == options.end() ? "" : resources->value("cpusetCpus", "");
  }
  Status SetPool(const std::string& cpus) {
    return node_->Qrmctl({"pool", "set", "online=" + cpus}).status();
  }
  v1::ReconcileStatus Reconcile() const {
    const auto status = node_->GetStatus();
    return status.ok() ? status->reconcile() : v1::ReconcileStatus();
  }

  const TempDir dir_;
  const std::string cgroups_ = dir_ / "cgroup";  ///< empty: nothing can be read back
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

std::unique_ptr<ScriptedPlugin> QuotaPlugin(const std::string& socket) {
  PluginScript script;
  script.hints = [](const auto&, auto&) { return OkStatus(); };
  script.allocate = [](const auto&, auto& response) {
    auto& given = *response.mutable_allocation_result()->mutable_resource_allocation();
    given[kQuota].set_oci_property_name("CpuQuota");
    given[kQuota].set_allocation_result("50000");
    return OkStatus();
  };
  script.identity = IdentityFor(kQuota);
  return std::make_unique<ScriptedPlugin>(socket, script);
}

TEST_F(AppliedTest, ContainerRecreatedWhileQrmdIsNotRunningGetsAllItsValuesAgain) {
  Start();
  const auto plugin = QuotaPlugin(dir_ / "node/plugins/quota.sock");
  const PodSpec pod = {.name = "web",
                       .uid = "uid",
                       .labels = {{kRoleLabel, "limited"}},
                       .container = {.milli_cpus = 500}};
  ASSERT_TRUE(Await([&] { return node_->ListPlugins()->size() == 2; }));
  ASSERT_TRUE(IsOk(runtime_.RunPod(pod)));
  ASSERT_TRUE(IsOk(node_->Stop()));
  ASSERT_TRUE(IsOk(runtime_.EndContainer("web", pod.container.name)));
  ASSERT_TRUE(IsOk(runtime_.AddContainerUnseen("web", pod.container)));

  ASSERT_TRUE(IsOk(node_->Start(2)));
  EXPECT_TRUE(Await([&] {
    const auto values = runtime_.Updated("web", pod.container.name);
    return values.cpuset_cpus() == "0-3" && values.cpu_quota() == 50000;
  })) << runtime_.Updated("web", pod.container.name).ShortDebugString();
}

TEST_F(AppliedTest, ALimitThatAPluginSetIsSetAgainAfterAnotherWriterChangedIt) {
  const PodSpec pod = {.name = "web",
                       .uid = "uid",
                       .labels = {{kRoleLabel, "limited"}},
                       .container = {.milli_cpus = 500}};
  const std::string cgroup = cgroups_ + MakeContainer(pod).linux().cgroups_path();
  fs::create_directories(cgroup);
  std::ofstream(cgroups_ + "/cgroup.controllers") << "cpuset cpu";
  std::ofstream(cgroup + "/cpuset.cpus") << "0-3";
  std::ofstream(cgroup + "/cpuset.mems") << "0";
  std::ofstream(cgroup + "/cpu.max") << "50000 100000";
  Start();
  const auto plugin = QuotaPlugin(dir_ / "node/plugins/quota.sock");
  ASSERT_TRUE(Await([&] { return node_->ListPlugins()->size() == 2; }));
  ASSERT_TRUE(IsOk(runtime_.RunPod(pod)));
  EXPECT_EQ(Reconcile().drift_repairs(), 0U);

  std::ofstream(cgroup + "/cpu.max") << "70000 100000";  // as kubelet does in a resize
  EXPECT_TRUE(Await([&] {
    return runtime_.Updated("web", pod.container.name).cpu_quota() == 50000;
  })) << runtime_.Updated("web", pod.container.name).ShortDebugString();
  EXPECT_GE(Reconcile().drift_repairs(), 1U);
}

TEST_F(AppliedTest, UpdateThatTimedOutAndWasTakenLateIsPutRightWhereCgroupsCannotBeRead) {
  Start({"--runtime-call-deadline=100ms"});
  ASSERT_TRUE(IsOk(runtime_.RunPod({.name = "web", .uid = "uid", .container = {.milli_cpus = 5}})));
  ASSERT_EQ(Cpus("web"), "0-3");
  runtime_.DelayAnswers(std::chrono::seconds(1));
  ASSERT_TRUE(IsOk(SetPool("4-7")));
  ASSERT_TRUE(Await([&] { return Cpus("web") == "4-7" && Reconcile().failures() > 0; }))
      << "the runtime took it, and qrmd does not know";
  ASSERT_TRUE(IsOk(SetPool("0-3")));  // what qrmd knows that the container had
  runtime_.DelayAnswers(std::chrono::milliseconds(0));
  EXPECT_TRUE(Await([&] { return Cpus("web") == "0-3"; }));
}

/// How kubelet reports a pod of two containers.
std::string PodOfTwo(const PodSpec& spec) {
  ::k8s::io::api::core::v1::Pod pod;
  pod.ParseFromString(PodMessage(spec.uid, spec.name, "0"));
  pod.mutable_spec()->clear_containers();
  for (const char* name : {"main", "helper"}) {
    auto& container = *pod.mutable_spec()->add_containers();
    container.set_name(name);
    (*container.mutable_resources()->mutable_requests())["cpu"].set_string("500m");
  }
  return pod.SerializeAsString();
}

/// A plugin that keeps the state loop waiting: it answers requests for hints only when released.
class SlowPlugin {
 public:
  explicit SlowPlugin(const std::string& socket) {
    PluginScript script;
    script.hints = [this, let = let_.get_future().share()](const auto&, auto&) {
      waiting_ = true;
      let.wait();
      return OkStatus();
    };
    script.reconcile = [this](const auto&, auto&) {
      reconciled_ = reconciled_ || waiting_;
      return OkStatus();
    };
    script.identity = IdentityFor(kSlow);
    plugin_ = std::make_unique<ScriptedPlugin>(socket, script);
  }
  bool waiting() const { return waiting_; }
  /// A reconcile has begun since it waits.
  bool reconciled() const { return reconciled_; }
  void Answer() { let_.set_value(); }

 private:
  std::promise<void> let_;
  std::atomic<bool> waiting_ = false;
  std::atomic<bool> reconciled_ = false;
  std::unique_ptr<ScriptedPlugin> plugin_;
};

TEST_F(AppliedTest, SidecarWithoutUpdatesIsNotDrift) {
  const std::string socket = dir_ / "pods-api.sock";
  ScriptedKubelet kubelet(socket);
  const PodSpec pod = {
      .name = "web", .uid = "uid", .container = {.name = "main", .milli_cpus = 500}};
  kubelet.Put(pod.uid, PodOfTwo(pod));
  Start({"--kubelet-pods-socket=" + socket, "--plugin-call-deadline=10s",
         "--admission-deadline=10s"});
  SlowPlugin slow(dir_ / "node/plugins/slow.sock");
  ASSERT_TRUE(
      Await([&] { return node_->HasFollowedKubelet() && node_->ListPlugins()->size() == 2; }));
  ASSERT_TRUE(IsOk(runtime_.RunPod(pod)));  // places the helper, too

  // A reconcile that began before qrmd knows the helper ends after it.
  auto held = std::async(std::launch::async, [this] {
    return runtime_.RunPod(
        {.name = "slow", .uid = "slow", .labels = {{kRoleLabel, "slow"}}, .container = {}});
  });
  ASSERT_TRUE(Await([&] { return slow.waiting(); }));
  // A reconcile begins now, or was under way and ends after this admission as well.
  Await([&] { return slow.reconciled(); }, std::chrono::seconds(2));
  PodSpec helper = pod;
  helper.container.name = "helper";
  const std::string cgroup = cgroups_ + MakeContainer(helper).linux().cgroups_path();
  fs::create_directories(cgroup);
  std::ofstream(cgroups_ + "/cgroup.controllers") << "cpuset";
  std::ofstream(cgroup + "/cpuset.cpus") << "0-7";  // where an unpinned container starts
  std::ofstream(cgroup + "/cpuset.mems") << "0";
  ASSERT_TRUE(IsOk(runtime_.AddContainerUnseen("web", helper.container)));
  runtime_.Disconnect();
  ASSERT_TRUE(Await([&] {
    const auto status = node_->GetStatus();
    return status.ok() && status->runtime().nri_connected() &&
           status->runtime().nri_connects() == 2;
  }));
  slow.Answer();
  (void)held.get();

  EXPECT_TRUE(Await([&] { return runtime_.Updated("web", "helper").cpuset_cpus() == "0-3"; }));
  std::ofstream(cgroup + "/cpuset.cpus") << "0-3";
  const uint64_t runs = Reconcile().runs();
  EXPECT_TRUE(Await([&] { return Reconcile().runs() > runs + 2; }));
  EXPECT_EQ(Reconcile().drift_repairs(), 0U);
  std::ostringstream log;
  log << std::ifstream(dir_ / "node/logs/qrmd.log").rdbuf();
  EXPECT_THAT(log.str(), Not(HasSubstr("drift corrected")));
}

}  // namespace
}  // namespace qrm::test::applied_test
