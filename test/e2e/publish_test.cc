// What qrmd reports to an API server about its node and about pods that it rejects.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/fake_api_server.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::test::publish_test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

constexpr char kNodes[] = "/api/v1/nodes";
constexpr char kTopologies[] = "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies";
constexpr int64_t kBytes = 4096;

/// A node of two NUMA nodes with 8 CPUs each, whose Guaranteed containers get exclusive CPUs.
class PublishTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.Put(kNodes, {{"metadata", {{"name", "n1"}, {"uid", "u1"}}}});
    std::ofstream(dir_ / "qrmd.yaml") << "machine: 'synthetic:package:2 [numa] core:4 pu:2'\n"
                                         "topology-policy: single-numa-node\n"
                                         "plugins: {cpu: {static: true}}\n"
                                         "publish: [topology, events]\n"
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
                      .builtin_plugins = "cpu,memory"});
    ASSERT_TRUE(IsOk(node_->Start(2)));
    ASSERT_TRUE(Await([&] { return CpusAvailable() == "8"; }));
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

}  // namespace
}  // namespace qrm::test::publish_test
