// What qrmd reports about pods, on a simulated runtime: the order of explain and of List, and
// memory as kubelet counts it.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/proto/core/v1/pod.pb.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/sysfs_machine.h"
#include "test/support/temp_dir.h"

namespace qrm::test::answers_test {
namespace {

using ::testing::ElementsAre;

constexpr char kSmallMachine[] = "synthetic:package:1 [numa] core:4 pu:1";

PodSpec Pod(const std::string& name, const std::string& uid, const ContainerSpec& container) {
  return {.name = name, .uid = uid, .container = container};
}

class AnswersTest : public testing::Test {
 protected:
  void Start(const std::string& machine, std::vector<std::string> flags = {}) {
    std::ofstream(dir_ / "qrmd.yaml") << "machine: \"" << machine << "\"\n";
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = "cpu,memory",
                      .flags = std::move(flags)});
    ASSERT_TRUE(IsOk(node_->Start(2)));
  }
  nlohmann::json Explain(const std::string& pod) {
    const StatusOr<std::string> told = node_->Qrmctl({"explain", pod, "-o", "json"});
    EXPECT_TRUE(told.ok()) << told.status();
    return nlohmann::json::parse(told.value_or("{}"));
  }

  const TempDir dir_;
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST_F(AnswersTest, ExplainShowsTheLatestPodOfANameFirst) {
  Start(kSmallMachine);
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", "uid-1", {.milli_cpus = 100}))));
  ASSERT_TRUE(IsOk(runtime_.RemovePod("web")));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", "uid-2", {.milli_cpus = 200}))));
  const nlohmann::json told = Explain("web");
  std::vector<std::string> uids;
  for (const nlohmann::json& decision : told["decisions"]) {
    uids.push_back(decision["pod_uid"]);
  }
  EXPECT_THAT(uids, ElementsAre("uid-2", "uid-1"));
}

/// A pod as kubelet reports it: an init container, a sidecar, and three app containers, of which
/// the second is the main one.
std::string PodOfMany(const std::string& uid) {
  ::k8s::io::api::core::v1::Pod pod;
  pod.ParseFromString(PodMessage(uid, "many", "0"));
  (*pod.mutable_metadata()->mutable_annotations())["kubernetes.io/main-container-name"] = "main";
  pod.mutable_spec()->clear_containers();
  const auto request = [](auto& container, const std::string& name) {
    container.set_name(name);
    (*container.mutable_resources()->mutable_requests())["cpu"].set_string("100m");
  };
  request(*pod.mutable_spec()->add_init_containers(), "setup");
  auto& proxy = *pod.mutable_spec()->add_init_containers();
  request(proxy, "proxy");
  proxy.set_restart_policy("Always");
  for (const char* name : {"before", "main", "after"}) {
    request(*pod.mutable_spec()->add_containers(), name);
  }
  return pod.SerializeAsString();
}

TEST_F(AnswersTest, ListHasContainersInKubeletsOrder) {
  const std::string socket = dir_ / "pods-api.sock";
  ScriptedKubelet kubelet(socket);
  kubelet.Put("uid-many", PodOfMany("uid-many"));
  Start(kSmallMachine, {"--kubelet-pods-socket=" + socket});
  ASSERT_TRUE(Await([&] { return node_->HasFollowedKubelet(); }));
  PodSpec pod = Pod("many", "uid-many", {.name = "setup", .milli_cpus = 100});
  pod.annotations = {{"kubernetes.io/main-container-name", "main"}};
  ASSERT_TRUE(IsOk(runtime_.RunPod(pod)));
  const auto list = node_->ListPodResources();
  ASSERT_TRUE(list.ok() && list->pod_resources_size() == 1);
  std::vector<std::string> names;
  for (const auto& container : list->pod_resources(0).containers()) {
    names.push_back(container.name());
  }
  EXPECT_THAT(names, ElementsAre("proxy", "before", "main", "after"));
}

/// This machine's memory; as its NUMA node has the half, the rest was plugged in later.
SysfsMachine WithPluggedMemory() {
  std::ifstream meminfo("/proc/meminfo");
  std::string name;
  uint64_t kibibytes = 0;
  meminfo >> name >> kibibytes;
  return {.kibibytes = kibibytes, .node_kibibytes = kibibytes / 2};
}

TEST_F(AnswersTest, MemoryOfABurstablePodIsEstimatedAsKubeletCountsIt) {
  constexpr int64_t kRequest = 300 << 20;
  WriteSysfsMachine(dir_ / "machine", WithPluggedMemory());
  Start("fsroot:" + (dir_ / "machine"));
  ASSERT_TRUE(IsOk(
      runtime_.RunPod(Pod("burstable", "uid", {.milli_cpus = 100, .memory_bytes = kRequest}))));
  const nlohmann::json decision = Explain("burstable")["decisions"][0]["decision"];
  EXPECT_EQ(decision["qos_class"], "Burstable");
  EXPECT_EQ(decision["requests"]["memory"]["amount"], kRequest);
}

}  // namespace
}  // namespace qrm::test::answers_test
