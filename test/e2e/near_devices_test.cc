// Instances of pools near the devices that kubelet gave to their pods.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <tuple>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/proto/core/v1/pod.pb.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/fake_api_server.h"
#include "test/support/fake_pod_resources.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_driver.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/temp_dir.h"

namespace qrm::test::near_devices_test {
namespace {

using ::testing::HasSubstr;

constexpr char kConfig[] = R"(
machine: "synthetic:package:2 [numa(memory=64GiB)] l3:1 core:16 pu:2"
plugins:
  cpu:
    rules: [{select: {label: {app: vllm}, container: engine}, pool: llm}]
    pools:
      llm:
        size: {min: 8, max: 32}
        instances: {by: pod, fill: balanced}
        place: {numa: one, near: ["nvidia.com/*"], threads: one-per-core, require: [near]}
)";

/// A pod that claims in an annotation that its GPU is on node 0.
PodSpec EnginePod(const std::string& name) {
  return {.name = name,
          .uid = "uid-" + name,
          .labels = {{"app", "vllm"}},
          .annotations = {{"qrm.io/device-nodes", R"({"engine":{"nvidia.com/gpu":"0"}})"}},
          .container = {.name = "engine", .milli_cpus = 12'000}};
}

class NearDevicesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(dir_ / "qrmd.yaml") << kConfig;
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = "cpu",
                      .flags = {"--kubelet-pods-socket=" + pods_socket_,
                                "--kubelet-pod-resources-socket=" + devices_socket_}});
    ASSERT_TRUE(IsOk(node_->Start(1)));
    ASSERT_TRUE(Await([&] { return node_->HasFollowedKubelet(); }));
  }

  /// Kubelet has given the pod's container a GPU of NUMA node 1, and has it made.
  Status Run(const std::string& name) {
    const PodSpec spec = EnginePod(name);
    ::k8s::io::api::core::v1::Pod pod;
    pod.ParseFromString(PodMessage(spec.uid, spec.name, "12"));
    auto& container = *pod.mutable_spec()->mutable_containers(0);
    container.set_name("engine");
    (*container.mutable_resources()->mutable_requests())["nvidia.com/gpu"].set_string("1");
    pods_.Put(spec.uid, pod.SerializeAsString());
    devices_.AddDevice({"default", name, "engine"}, {"nvidia.com/gpu", name, {1}});
    return runtime_.RunPod(spec);
  }

  std::string Pools() { return node_->Qrmctl({"pool", "get"}).value_or(""); }

  TempDir dir_;
  const std::string pods_socket_ = dir_ / "pods-api.sock";
  const std::string devices_socket_ = dir_ / "pod-resources.sock";
  ScriptedKubelet pods_{pods_socket_};
  FakeKubelet devices_{devices_socket_};
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST_F(NearDevicesTest, AnEngineRunsBesideTheGpuThatKubeletGaveItWhateverItSaysItself) {
  ASSERT_TRUE(IsOk(Run("a")));
  EXPECT_THAT(Pools(), HasSubstr("llm/default/a   32-55 "));
  const Status second = Run("b");
  EXPECT_THAT(MessageOf(second), HasSubstr("pool llm/default/b wants 24 CPUs of cores near "
                                           "nvidia.com/* (node 0: 0 of 0 left, node 1: 8 of 32 "
                                           "left)"));
}

TEST_F(NearDevicesTest, AnEngineStaysThereThroughARestartWithoutKubelet) {
  ASSERT_TRUE(IsOk(Run("a")));
  devices_.Hang();
  node_->KillDaemon();
  ASSERT_TRUE(IsOk(node_->Start(1)));
  ASSERT_TRUE(IsOk(node_->Reconcile()));
  EXPECT_THAT(Pools(), HasSubstr("llm/default/a   32-55 "));
}

/// Claims' devices on a node whose Guaranteed containers get exclusive CPUs.
class ClaimedDevicesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(dir_ / "qrmd.yaml") << R"(
machine: "synthetic:package:4 [numa(memory=8GiB)] core:4 pu:1"
topology-policy: single-numa-node
plugins: {cpu: {static: true, reserved-cpus: "0"}, memory: {static: true}}
compute-drivers: {scripted: {namespaces: [default]}}
resource-slices: true
node-name: n1
)" << "kubeconfig: " << server_.WriteKubeconfig(dir_.path())
                                      << '\n';
    for (int node = 0; node < 4; ++node) {
      PutSlice(node);
    }
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = "cpu,memory",
                      .flags = {"--kubelet-pods-socket=" + pods_socket_,
                                "--kubelet-pod-resources-socket=" + devices_socket_}});
    ASSERT_TRUE(IsOk(node_->Start(2)));
    ASSERT_TRUE(Await([&] { return node_->HasFollowedKubelet(); }));
    ASSERT_TRUE(Await([&] {
      const auto requests = server_.requests();
      return std::any_of(requests.begin(), requests.end(), [](const std::string& request) {
        return request.find("watch") != std::string::npos;
      });
    }));
  }

  void PutSlice(int node) {
    server_.Put("/apis/resource.k8s.io/v1/resourceslices",
                {{"metadata", {{"name", fmt::format("slice{}", node)}}},
                 {"spec",
                  {{"driver", "gpu.example.com"},
                   {"nodeName", "n1"},
                   {"pool", {{"name", fmt::format("p{}", node)}, {"generation", 1}}},
                   {"devices",
                    {{{"name", "gpu"},
                      {"attributes", {{"resource.kubernetes.io/numaNode", {{"int", node}}}}}}}}}}});
  }

  /// A Guaranteed pod of two CPUs, with a claim whose device is on `node`.
  Status Run(const std::string& name, int node, const StringMap& annotations = {}) {
    ::k8s::io::api::core::v1::Pod pod;
    pod.ParseFromString(PodMessage("uid-" + name, name, "2"));
    auto& resources = *pod.mutable_spec()->mutable_containers(0)->mutable_resources();
    for (auto* amounts : {resources.mutable_requests(), resources.mutable_limits()}) {
      (*amounts)["cpu"].set_string("2");
      (*amounts)["memory"].set_string("1Gi");
    }
    resources.add_claims()->set_name("gpu");
    pods_.Put("uid-" + name, pod.SerializeAsString());
    devices_.AddClaim({"default", name, "main"},
                      {"gpu-" + name, "gpu.example.com", fmt::format("p{}", node), "gpu", {}});
    return runtime_.RunPod(
        {.name = name,
         .uid = "uid-" + name,
         .annotations = annotations,
         .container = {
             .name = "main", .milli_cpus = 2000, .memory_bytes = 1 << 30, .cpu_limit = true}});
  }

  std::string Pods() { return node_->Qrmctl({"pods"}).value_or(""); }

  TempDir dir_;
  const std::string pods_socket_ = dir_ / "pods-api.sock";
  const std::string devices_socket_ = dir_ / "pod-resources.sock";
  ScriptedKubelet pods_{pods_socket_};
  FakeKubelet devices_{devices_socket_};
  FakeApiServer server_;
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST_F(ClaimedDevicesTest, CpusAndMemoryAreOnTheNodeOfTheClaimedDeviceWhileItHasRoom) {
  for (const auto& [name, node, cpus] :
       {std::tuple("a", 2, "8-9"), std::tuple("b", 1, "4-5"), std::tuple("c", 3, "12-13"),
        std::tuple("d", 2, "10-11")}) {
    ASSERT_TRUE(IsOk(Run(name, node)));
    const auto options = runtime_.RunOptions(name);
    EXPECT_EQ(options["linux_container_resources"]["cpusetCpus"], cpus) << name;
    EXPECT_EQ(options["linux_container_resources"]["cpusetMems"], std::to_string(node)) << name;
  }
  EXPECT_THAT(node_->Qrmctl({"explain", "d"}).value_or(""),
              HasSubstr("claim gpu-d: gpu.example.com/p2/gpu"));
}

TEST_F(ClaimedDevicesTest, APodIsRejectedAwayFromItsClaimedDeviceOnlyIfItAsksForThat) {
  ASSERT_TRUE(IsOk(Run("a", 2)));
  ASSERT_TRUE(IsOk(Run("b", 2)));
  EXPECT_TRUE(IsOk(Run("c", 2)));
  EXPECT_THAT(MessageOf(Run("d", 2, {{"qrm.io/claim-alignment", "required"}})),
              HasSubstr("no NUMA placement fits under topology-policy single-numa-node"));
}

/// A driver that keeps what it was asked, and gives the first CPUs.
class DriverBesideDevicesTest : public ClaimedDevicesTest {
 protected:
  void SetUp() override {
    ClaimedDevicesTest::SetUp();
    DriverScript script;
    script.admit = [this](const auto& request, auto& response) {
      asked_ = request;
      const CpuSet available = CpuSet::Parse(request.availablecpus()).value_or(CpuSet());
      const int first = *available.begin();
      response.mutable_rset()->set_cpuset(fmt::format("{}-{}", first, first + 1));
      response.mutable_rset()->set_exclusive(true);
      return OkStatus();
    };
    driver_ =
        std::make_unique<ScriptedDriver>(dir_ / "node/plugins/scripted.sock", std::move(script));
    ASSERT_TRUE(Await([&] {
      return node_->Qrmctl({"plugins"}).value_or("").find("cci.qrm.io/scripted") !=
             std::string::npos;
    }));
  }
  void TearDown() override { driver_.reset(); }  // it uses the members below

  const StringMap by_driver_ = {{"cci.qrm.io/driver", "scripted"}};
  cci::v1alpha1::AdmitRequest asked_;
  std::unique_ptr<ScriptedDriver> driver_;
};

TEST_F(DriverBesideDevicesTest, ADriverIsOfferedCpusBesideTheClaimedDevice) {
  ASSERT_TRUE(IsOk(Run("a", 2, by_driver_)));
  EXPECT_EQ(asked_.device_nodes().at("claim gpu-a: gpu.example.com/p2/gpu"), "2");
  EXPECT_EQ(asked_.availablecpus(), "8-11");
}

TEST_F(DriverBesideDevicesTest, ADriverIsOfferedCpusBesideTheDeviceThatKubeletGave) {
  devices_.AddDevice({"default", "a", "main"}, {"nvidia.com/gpu", "0", {1}});
  ASSERT_TRUE(IsOk(Run("a", 1, by_driver_)));
  EXPECT_EQ(asked_.device_nodes().at("nvidia.com/gpu"), "1");
  EXPECT_EQ(asked_.availablecpus(), "4-7");
}

}  // namespace
}  // namespace qrm::test::near_devices_test
