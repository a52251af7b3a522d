// What qrmd reports to an API server about its node and about pods that it rejects.
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/proto/core/v1/pod.pb.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/fake_api_server.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_driver.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/temp_dir.h"

namespace qrm::test::publish_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

constexpr char kNodes[] = "/api/v1/nodes";
constexpr char kTopologies[] = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies";
constexpr int64_t kBytes = 4096;

/// The machine has two NUMA nodes with 8 CPUs each; Guaranteed containers get exclusive CPUs.
constexpr char kKeys[] =
    "machine: 'synthetic:package:2 [numa] core:4 pu:2'\nplugins: {cpu: {static: true}}\n"
    "compute-drivers: {scripted: {namespaces: [default]}}\nreject-as: fail\n";

class PublishTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Start(kKeys, "cpu,memory");
    ASSERT_TRUE(Await([&] { return CpusAvailable() == "8"; }));
  }
  void Start(const std::string& keys, const std::string& builtin_plugins,
             std::vector<std::string> flags = {}) {
    server_.Put(kNodes, {{"metadata", {{"name", "n1"}, {"uid", "u1"}}}});
    std::ofstream(dir_ / "qrmd.yaml") << keys
                                      << "topology-policy: single-numa-node\n"
                                         "publish: [topology, events, pod-failures]\n"
                                         "publish-interval: 100ms\n"
                                         "node-name: n1\n"
                                         "kubeconfig: "
                                      << server_.WriteKubeconfig(dir_.path()) << '\n';
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = builtin_plugins,
                      .flags = std::move(flags)});
    ASSERT_TRUE(IsOk(node_->Start(builtin_plugins == "cpu" ? 1 : 2)));
  }

  static PodSpec Pod(const std::string& name, int cpus) {
    return {.name = name,
            .uid = "uid-" + name,
            .container = {.milli_cpus = cpus * 1000L, .memory_bytes = kBytes, .cpu_limit = true}};
  }
  /// Of the first NUMA node, as the API server has it.
  std::string CpusAvailable() const {
    const nlohmann::json topology = server_.Find(kTopologies, "n1");
    const nlohmann::json::json_pointer path("/zones/0/resources/0/available");
    return topology.contains(path) ? topology[path].get<std::string>() : std::string();
  }

  TempDir dir_;
  FakeApiServer server_;
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST_F(PublishTest, PodsThatComeAndGoChangeWhatIsLeft) {
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", 3))));
  EXPECT_TRUE(Await([&] { return CpusAvailable() == "5"; }));
  ASSERT_TRUE(IsOk(runtime_.RemovePod("web")));
  EXPECT_TRUE(Await([&] { return CpusAvailable() == "8"; }));
}

TEST_F(PublishTest, ARejectedPodHasAnEvent) {
  ASSERT_FALSE(runtime_.RunPod(Pod("large", 12)).ok());
  EXPECT_TRUE(Await([&] {
    const auto requests = server_.requests();
    return ::testing::Value(requests, Contains(HasSubstr("namespaces/default/events/large.")));
  }));
}

TEST_F(PublishTest, ARejectedPodEndsSoThatItsOwnerCreatesItElsewhere) {
  server_.Put("/api/v1/pods",
              {{"metadata", {{"namespace", "default"}, {"name", "large"}, {"uid", "uid-large"}}},
               {"status", {{"phase", "Pending"}}}});
  const Status refused = runtime_.RunPod(Pod("large", 12));
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(Await([&] {
    return server_.Find("/api/v1/pods", "default/large")["status"]["phase"] == "Failed";
  }));
  const std::string why = server_.Find("/api/v1/pods", "default/large")["status"]["message"];
  EXPECT_NE(MessageOf(refused).find(why), std::string::npos) << why;
}

// The second try of the admission releases what the terminated pod has.
TEST_F(PublishTest, APodThatTerminatedPodsMakeRoomForDoesNotEnd) {
  server_.Put("/api/v1/pods",
              {{"metadata", {{"namespace", "default"}, {"name", "next"}, {"uid", "uid-next"}}},
               {"status", {{"phase", "Pending"}}}});
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("first", 8))));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("done", 7))));
  ASSERT_TRUE(IsOk(runtime_.FinishPod("done")));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("next", 7))));
  ASSERT_FALSE(runtime_.RunPod(Pod("large", 12)).ok());
  EXPECT_TRUE(Await([&] {  // the end of another pod follows
    const auto requests = server_.requests();
    return ::testing::Value(requests, Contains(HasSubstr("default/pods/large/status")));
  }));
  EXPECT_EQ(server_.Find("/api/v1/pods", "default/next")["status"]["phase"], "Pending");
}

TEST_F(PublishTest, AWarningOfAComputeDriverIsAnEventOfItsPod) {
  DriverScript script;
  script.admit = [](const auto&, auto& response) {
    response.mutable_rset()->set_cpuset("1");
    response.mutable_rset()->set_exclusive(true);
    response.add_warnings("2 is a number of CPUs");
    return OkStatus();
  };
  const ScriptedDriver driver(dir_ / "node/plugins/scripted.sock", std::move(script));
  PodSpec pod = Pod("warned", 1);
  pod.annotations["cci.qrm.io/driver"] = "scripted";
  ASSERT_TRUE(Await([&] {
    return ::testing::Value(node_->Qrmctl({"plugins"}).value_or(""), HasSubstr("scripted"));
  }));
  ASSERT_TRUE(IsOk(runtime_.RunPod(pod)));
  EXPECT_TRUE(Await([&] {
    const auto requests = server_.requests();
    return ::testing::Value(requests, Contains(HasSubstr("namespaces/default/events/warned.")));
  }));
}

TEST_F(PublishTest, AFailingApiServerIsShownByStatusAndDelaysNoPod) {
  server_.Refuse(1000, 403);
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", 3))));
  EXPECT_TRUE(Await([&] {
    return node_->Qrmctl({"status"}).value_or("").find("the API server may have outdated data") !=
           std::string::npos;
  }));
  server_.Refuse(0, 403);
  EXPECT_TRUE(Await([&] { return CpusAvailable() == "5"; }));
}

/// Of two NUMA nodes with 4 CPUs and 1 GiB each, the second has 64 hugepages of 2 MiB.
constexpr char kMachine[] =
    "machine: 'described:cpus=0-7 cores=0-7 l3s=0*4,4*4 packages=0*4,1*4 cpu-nodes=0*4,1*4 "
    "nodes=0-1 node-packages=0-1 memory=1073741824*2 hugepages-2097152=0,64 "
    "distances=10,20,20,10'\n";
constexpr char kStatic[] = "static: true\nreserved-memory: {1: {hugepages-2Mi: 4Mi}}\n";
constexpr char kPages[] = "hugepages-2Mi";
constexpr int64_t kMiB = int64_t{1} << 20;

/// The memory plugin is in qrmd, or a process.
class HugepagesTest : public PublishTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    const bool is_process = GetParam();
    std::ofstream(dir_ / "memory.yaml") << kMachine << kStatic;
    const std::string section =
        is_process
            ? ""
            : "plugins: {memory: {static: true, reserved-memory: {1: {hugepages-2Mi: 4Mi}}}}\n";
    Start(kMachine + section, is_process ? "cpu" : "cpu,memory",
          {"--kubelet-pods-socket=" + pods_socket_});
    if (is_process) {
      ASSERT_TRUE(IsOk(node_->StartPlugin("memory", "memory", dir_ / "memory.yaml")));
    }
    ASSERT_TRUE(Await([&] { return node_->HasFollowedKubelet(); }));
  }
  /// A Guaranteed pod of 1 CPU and 64 MiB that requests so much in hugepages of 2 MiB.
  Status Run(const std::string& name, const std::string& pages) {
    PodSpec spec = Pod(name, 1);
    spec.container.name = "main";
    spec.container.memory_bytes = 64 * kMiB;
    ::k8s::io::api::core::v1::Pod pod;
    pod.ParseFromString(PodMessage(spec.uid, name, "1"));
    auto& resources = *pod.mutable_spec()->mutable_containers(0)->mutable_resources();
    for (const auto& [resource, amount] :
         StringMap{{"cpu", "1"}, {"memory", "64Mi"}, {kPages, pages}}) {
      (*resources.mutable_requests())[resource].set_string(amount);
      (*resources.mutable_limits())[resource].set_string(amount);
    }
    pods_.Put(spec.uid, pod.SerializeAsString());
    return runtime_.RunPod(spec);
  }
  /// The bytes of hugepages on each node that `blocks` has.
  template <typename Blocks>
  static std::map<int64_t, int64_t> PagesOf(const Blocks& blocks) {
    std::map<int64_t, int64_t> bytes;
    for (const ::v1::ContainerMemory& block : blocks) {
      if (block.memory_type() == kPages) {
        bytes[block.topology().nodes(0).id()] += static_cast<int64_t>(block.size());
      }
    }
    return bytes;
  }
  /// Of the second NUMA node, as the API server has it.
  std::string PagesAvailable() const {
    const nlohmann::json topology = server_.Find(kTopologies, "n1");
    const nlohmann::json zone =
        topology.is_null() ? nlohmann::json() : topology["zones"].at(1)["resources"];
    for (const nlohmann::json& resource : zone) {
      if (resource["name"] == kPages) {
        return resource["available"];
      }
    }
    return "";
  }

  const std::string pods_socket_ = dir_ / "pods-api.sock";
  ScriptedKubelet pods_{pods_socket_};
};

TEST_P(HugepagesTest, AreListedAndAllocatableBySizeAndNoMoreAvailable) {
  EXPECT_TRUE(Await([&] { return PagesAvailable() == std::to_string(124 * kMiB); }));
  ASSERT_TRUE(IsOk(Run("web", "24Mi")));
  const auto list = node_->ListPodResources();
  ASSERT_TRUE(list.ok() && list->pod_resources_size() == 1);
  EXPECT_THAT(PagesOf(list->pod_resources(0).containers(0).memory()),
              ElementsAre(Pair(1, 24 * kMiB)));
  EXPECT_THAT(PagesOf(node_->GetAllocatableResources()->memory()),
              ElementsAre(Pair(1, 124 * kMiB)));
  EXPECT_TRUE(Await([&] { return PagesAvailable() == std::to_string(100 * kMiB); }));
  EXPECT_THAT(MessageOf(Run("large", "102Mi")), HasSubstr(kPages));
}

INSTANTIATE_TEST_SUITE_P(Memory, HugepagesTest, testing::Bool(), [](const auto& param_info) {
  return param_info.param ? "Process" : "BuiltIn";
});

}  // namespace
}  // namespace qrm::test::publish_test
