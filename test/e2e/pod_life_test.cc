// When the allocations of a pod or container are free again, and which pod gets them, on a
// simulated runtime.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/id_set.h"
#include "api/proto/core/v1/pod.pb.h"
#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "api/wire.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/scripted_plugin.h"
#include "test/support/temp_dir.h"

namespace qrm::test::pod_life_test {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kMachine[] =
    "machine: \"synthetic:package:1 [numa] core:5 pu:1\"\nnuma-memory: {0: 16Gi}\n";
constexpr char kStatic[] = "reserved-cpus: \"0\"\nstatic: true\n";
constexpr int kDeleted = 3;  // an event of kubelet's Pods API
/// Only one pod of two containers with so many exclusive CPUs fits on the node.
constexpr int kMost = 3;

ContainerSpec Container(const std::string& name, int cpus) {
  return {.name = name,
          .milli_cpus = int64_t{cpus} * 1000,
          .memory_bytes = int64_t{64} << 20,
          .cpu_limit = true};
}

/// A Guaranteed pod.
PodSpec Pod(const std::string& name, int cpus, const std::string& uid = "") {
  return {
      .name = name, .uid = uid.empty() ? "uid-" + name : uid, .container = Container("main", cpus)};
}

/// A node of five CPUs, which containers get exclusively; CPU 0 is reserved.
class PodLifeTest : public testing::Test {
 protected:
  /// The allocations of an ended pod are kept for `ended_after`.
  void Start(const std::string& ended_after, const std::string& builtin_plugins = "cpu") {
    std::ofstream(dir_ / "qrmd.yaml") << kMachine << "topology-policy: none\nplugins:\n  cpu:\n"
                                      << "    reserved-cpus: \"0\"\n    static: true\n";
    node_ = std::make_unique<Node>(Node::Options{
        .bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
        .work_dir = dir_ / "node",
        .config = dir_ / "qrmd.yaml",
        .nri_socket = runtime_.nri_socket(),
        .cri_socket = runtime_.cri_socket(),
        .builtin_plugins = builtin_plugins,
        .reconcile_period = "500ms",
        .flags = {"--pod-ended-after=" + ended_after, "--kubelet-pods-socket=" + kubelet_socket_}});
    ASSERT_TRUE(IsOk(node_->Start(builtin_plugins.empty() ? 0 : 1)));
  }
  Status StartPlugin(const std::string& name, const std::string& config) {
    std::ofstream(dir_ / (name + ".yaml")) << kMachine << config;
    return node_->StartPlugin(name, name, dir_ / (name + ".yaml"));
  }
  void AwaitConnections(uint64_t count) {
    EXPECT_TRUE(Await([&] {
      const auto status = node_->GetStatus();
      return status.ok() && status->runtime().nri_connected() &&
             status->runtime().nri_connects() == count;
    }));
  }

  /// The containers on record, as "UID/name".
  std::set<std::string> OnRecord() const {
    std::set<std::string> names;
    const v1::ListPodsResponse list = node_->ListPods().value_or(v1::ListPodsResponse());
    for (const v1::Pod& pod : list.pods()) {
      for (const v1::Container& container : pod.containers()) {
        names.insert(pod.uid() + "/" + container.name());
      }
    }
    return names;
  }
  CpuSet CpusOf(const std::string& pod) const {
    const auto options = runtime_.RunOptions(pod);
    const auto resources = options.find("linux_container_resources");
    return resources == options.end() ? CpuSet()
                                      : *CpuSet::Parse(resources->value("cpusetCpus", ""));
  }

  const TempDir dir_;
  SimulatedRuntime runtime_{dir_.path()};
  const std::string kubelet_socket_ = dir_ / "pods.sock";
  std::unique_ptr<Node> node_;
};

TEST_F(PodLifeTest, PodOlderThanTheRuntimesRestartIsForgottenWhenItIsRemoved) {
  Start("10m");
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", kMost))));
  runtime_.Restart();
  AwaitConnections(2);
  ASSERT_TRUE(IsOk(runtime_.RemovePod("web")));
  EXPECT_TRUE(Await([&] { return OnRecord().empty(); }));
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("next", kMost))));
}

TEST_F(PodLifeTest, PodOlderThanTheRuntimesRestartIsForgottenWhenItHasEnded) {
  Start("1s");
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("job", kMost))));
  runtime_.Restart();
  AwaitConnections(2);
  ASSERT_TRUE(IsOk(runtime_.FinishPod("job")));
  EXPECT_TRUE(Await([&] { return OnRecord().empty(); }));
}

TEST_F(PodLifeTest, PodThatEndedWhileTheDaemonWasNotRunningIsForgottenAlthoughItsSandboxStays) {
  Start("1s");
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("job", kMost))));
  node_->KillDaemon();
  ASSERT_TRUE(IsOk(runtime_.FinishPod("job")));
  ASSERT_TRUE(IsOk(node_->Start(1)));
  EXPECT_TRUE(Await([&] { return OnRecord().empty(); }));
}

TEST_F(PodLifeTest, PodIsForgottenAlthoughASandboxOfItWasRejectedByAnotherPlugin) {
  Start("10m");
  ASSERT_TRUE(IsOk(runtime_.RefuseSandbox(Pod("web", kMost))));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", kMost))));
  ASSERT_TRUE(IsOk(runtime_.RemovePod("web")));
  EXPECT_TRUE(Await([&] { return OnRecord().empty(); }));
}

TEST_F(PodLifeTest, RunsOfAJobFollowEachOtherAtOnceOnAFullNode) {
  Start("10m");
  for (const char* uid : {"run-1", "run-2", "run-3"}) {
    ASSERT_TRUE(IsOk(runtime_.RunPod(Pod(uid, kMost)))) << uid;
    ASSERT_TRUE(IsOk(runtime_.FinishPod(uid)));
  }
}

TEST_F(PodLifeTest, AllocationsOfAnEndedPodAreKeptForItsReturnWhileThereIsRoom) {
  Start("10m");
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("job", 1))));
  const CpuSet before = CpusOf("job");
  ASSERT_TRUE(IsOk(runtime_.FinishPod("job")));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("other", 1))));
  EXPECT_FALSE(CpusOf("other").Intersects(before));
  EXPECT_THAT(OnRecord(), ElementsAre("uid-job/main", "uid-other/main"));
}

TEST_F(PodLifeTest, RecreatedPodTakesTheAllocationsOfItsPredecessor) {
  Start("10m");
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web-0", 1, "uid-before"))));
  ASSERT_TRUE(IsOk(runtime_.FinishPod("web-0")));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web-0", 1, "uid-after"))));
  EXPECT_TRUE(Await([&] { return !OnRecord().contains("uid-before/main"); }));
  EXPECT_THAT(OnRecord(), ElementsAre("uid-after/main"));
}

TEST_F(PodLifeTest, AllocationsOfAnEndedPodAreFreedWhenKubeletSaysThatThePodIsGone) {
  ScriptedKubelet kubelet(kubelet_socket_);
  kubelet.Put("uid-job", PodMessage("uid-job", "job", "1"));
  Start("10m");
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("job", 1))));
  ASSERT_TRUE(IsOk(runtime_.FinishPod("job")));
  EXPECT_THAT(OnRecord(), ElementsAre("uid-job/main"));
  kubelet.Send(kDeleted, PodMessage("uid-job", "job", "1"));
  EXPECT_TRUE(Await([&] { return OnRecord().empty(); }));
}

TEST_F(PodLifeTest, MainContainerGetsTheCpusOfInitContainersWhoseRequestsAreEstimated) {
  Start("10m");
  PodSpec pod = Pod("web", kMost);
  pod.container.name = "init";
  ASSERT_TRUE(IsOk(runtime_.RunPod(pod)));
  ASSERT_TRUE(IsOk(runtime_.EndContainer("web", "init")));
  EXPECT_TRUE(IsOk(runtime_.AddContainer("web", Container("main", kMost))));
  EXPECT_THAT(OnRecord(), ElementsAre("uid-web/main"));
}

TEST_F(PodLifeTest, ContainerThatWasRestartedKeepsItsCpusWhenAnotherOfItsPodIsMade) {
  Start("10m");
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", kMost))));
  ASSERT_TRUE(IsOk(runtime_.EndContainer("web", "main")));
  ASSERT_TRUE(IsOk(runtime_.AddContainer("web", Container("main", kMost))));
  ASSERT_TRUE(IsOk(runtime_.EndContainer("web", "main")));
  EXPECT_FALSE(runtime_.AddContainer("web", Container("helper", kMost)).ok());
  EXPECT_THAT(OnRecord(), ElementsAre("uid-web/main"));
}

TEST_F(PodLifeTest, ContainerWhoseStartWasNotReportedIsUpdated) {
  runtime_.CreatePodUnseen(Pod("web", 1));
  Start("10m");
  EXPECT_TRUE(Await([&] { return OnRecord().contains("uid-web/main"); }));
  EXPECT_EQ(CpusOf("web"), CpuSet());
  ASSERT_TRUE(IsOk(runtime_.StartUnseen("web")));
  EXPECT_TRUE(Await([&] { return CpusOf("web").Count() == 1; }, seconds(15)));
}

TEST_F(PodLifeTest, InitContainersThatEndedLongAgoAreNotAdoptedWithTheirPod) {
  ScriptedKubelet kubelet(kubelet_socket_);
  ::k8s::io::api::core::v1::Pod message;
  message.ParseFromString(PodMessage("uid-web", "web", "1"));
  *message.mutable_spec()->add_init_containers() = message.spec().containers(0);
  message.mutable_spec()->mutable_init_containers(0)->set_name("init");
  kubelet.Put("uid-web", message.SerializeAsString());
  runtime_.RunPodUnseen(Pod("web", 1));
  Start("10m");
  EXPECT_TRUE(Await([&] { return OnRecord().contains("uid-web/main"); }));
  EXPECT_THAT(OnRecord(), ElementsAre("uid-web/main"));
}

TEST_F(PodLifeTest, ContainerStartsOnlyWhenAPluginThatWantsToHasPreparedIt) {
  Start("10m", "");
  std::atomic<bool> broken = true;
  PluginScript script;
  script.identity = IdentityFor("cpu");
  script.options = [](const auto&, resourceplugin::v1alpha1::ResourcePluginOptions& options) {
    options.set_pre_start_required(true);
    return OkStatus();
  };
  script.allocate = [](const resourceplugin::v1alpha1::ResourceRequest& message,
                       resourceplugin::v1alpha1::ResourceAllocationResponse& response) {
    response = wire::AllocationResponse(*wire::FromWire(message),
                                        {{"cpu", ResourceAllocation{.quantity = 1}}});
    return OkStatus();
  };
  script.remove_pod = [](const auto&, auto&) { return OkStatus(); };
  script.pre_start = [&](const resourceplugin::v1alpha1::PreStartContainerRequest& request, auto&) {
    EXPECT_EQ(request.pod_uid() + request.container_name(), "uid-webmain");
    return broken ? Errorf(StatusCode::kUnavailable, "lane 3 is broken") : OkStatus();
  };
  const ScriptedPlugin plugin(dir_ / "node/plugins/cpu.sock", script);
  ASSERT_TRUE(Await([&] {
    const auto plugins = node_->ListPlugins();
    return plugins.ok() && !plugins->empty() && plugins->front().live();
  }));
  EXPECT_THAT(MessageOf(runtime_.RunPod(Pod("web", 1))),
              AllOf(HasSubstr("cannot start container main of pod default/web"),
                    HasSubstr("lane 3 is broken")));
  broken = false;
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("web", 1))));
}

// Katalyst's plugins answer so for a sidecar that comes before its main container.
TEST_F(PodLifeTest, APluginThatAllocatesNothingAtFirstIsAskedAgain) {
  Start("10m", "");
  std::atomic<bool> has_cpus = false;
  PluginScript script;
  script.identity = IdentityFor("cpu");
  script.options = [](const auto&, auto&) { return OkStatus(); };
  script.allocate = [&](const resourceplugin::v1alpha1::ResourceRequest& message,
                        resourceplugin::v1alpha1::ResourceAllocationResponse& response) {
    AllocationByResource given;
    if (has_cpus) {
      given["cpu"] =
          ResourceAllocation{.oci_property = std::string(kCpusetCpus), .value = "2", .quantity = 1};
    }
    response = wire::AllocationResponse(*wire::FromWire(message), given);
    return OkStatus();
  };
  const ScriptedPlugin plugin(dir_ / "node/plugins/cpu.sock", script);
  ASSERT_TRUE(Await([&] {
    const auto plugins = node_->ListPlugins();
    return plugins.ok() && !plugins->empty() && plugins->front().live();
  }));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", 1))));
  const auto status_says_so = [&] {
    return node_->Qrmctl({"status"})
               .value_or("")
               .find(
                   "answered requests without an allocation, and are asked again at least every 30 "
                   "s: "
                   "1") != std::string::npos;
  };
  EXPECT_TRUE(Await(status_says_so));
  EXPECT_THAT(node_->Qrmctl({"pods", "-o", "wide"}).value_or(""), HasSubstr("qrmd asks again"));
  has_cpus = true;
  EXPECT_TRUE(Await([&] { return CpusOf("web") == CpuSet{2}; }));
  EXPECT_TRUE(Await([&] { return !status_says_so(); }));
}

TEST_F(PodLifeTest, ContainerThatRanBeforeAPluginsFirstRegistrationIsPlacedWhenItComes) {
  Start("10m", "");
  ASSERT_TRUE(IsOk(StartPlugin("memory", "")));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", 1))));
  EXPECT_EQ(CpusOf("web"), CpuSet());
  ASSERT_TRUE(IsOk(StartPlugin("cpu", kStatic)));
  EXPECT_TRUE(Await([&] { return CpusOf("web").Count() == 1; }));
}

TEST_F(PodLifeTest, UnpinnedContainerLeavesExclusiveCpusOfOthers) {
  Start("10m", "");
  for (const char* name : {"a", "b"}) {
    ASSERT_TRUE(IsOk(runtime_.RunPod(Pod(name, kMost))));
  }
  ASSERT_TRUE(IsOk(StartPlugin("cpu", kStatic)));
  EXPECT_TRUE(Await([&] { return !CpusOf("a").Empty() && !CpusOf("b").Empty(); }));
  EXPECT_FALSE(CpusOf("a").Intersects(CpusOf("b")));
  EXPECT_EQ(std::max(CpusOf("a").Count(), CpusOf("b").Count()), kMost);
}

}  // namespace
}  // namespace qrm::test::pod_life_test
