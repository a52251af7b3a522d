// A dry run beside the real admission: it says the same and leaves no trace.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/proto/core/v1/pod.pb.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/temp_dir.h"

namespace qrm::test::dry_run_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Json = nlohmann::json;

constexpr char kSamples[] = "docs/samples/example2/";

PodSpec Pod(const std::string& name, const std::string& role, int64_t cpus, int64_t gib) {
  return {.name = name,
          .uid = "uid-" + name,
          .labels = {{"katalyst.kubewharf.io/pod_role", role}},
          .container = {.milli_cpus = cpus * 1000, .memory_bytes = gib << 30}};
}

/// The pod as its author wrote it, with more containers that request nothing.
std::string Manifest(const PodSpec& pod, const std::vector<std::string>& sidecars = {}) {
  const Json limits = {{"memory", std::to_string(pod.container.memory_bytes)}};
  Json requests = limits;
  requests["cpu"] = std::to_string(pod.container.milli_cpus) + "m";
  Json containers = Json::array();
  containers.push_back(
      {{"name", pod.container.name}, {"resources", {{"requests", requests}, {"limits", limits}}}});
  for (const std::string& name : sidecars) {
    containers.push_back({{"name", name}});
  }
  return Json{{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", {{"name", pod.name}, {"labels", pod.labels}}},
              {"spec", {{"containers", containers}}}}
      .dump(2);
}

/// The same as kubelet reports it.
std::string KubeletsWord(const PodSpec& spec, const std::vector<std::string>& sidecars) {
  ::k8s::io::api::core::v1::Pod pod;
  pod.ParseFromString(
      PodMessage(spec.uid, spec.name, std::to_string(spec.container.milli_cpus) + "m"));
  auto& main = *pod.mutable_spec()->mutable_containers(0);
  main.set_name(spec.container.name);
  (*main.mutable_resources()->mutable_limits())["memory"].set_string(
      std::to_string(spec.container.memory_bytes));
  for (const std::string& name : sidecars) {
    pod.mutable_spec()->add_containers()->set_name(name);
  }
  return pod.SerializeAsString();
}

// The second example of the samples: cpu and memory plugins, one NUMA node for each pod.
class DryRunTest : public testing::Test {
 protected:
  void SetUp() override {
    runtime_ = std::make_unique<SimulatedRuntime>(dir_.path());
    node_ = std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = work_dir_,
                      .config = std::string(kSamples) + "qrmd.yaml",
                      .nri_socket = runtime_->nri_socket(),
                      .cri_socket = runtime_->cri_socket(),
                      .reconcile_period = "100ms",
                      .flags = {"--kubelet-pods-socket=" + kubelet_socket_}});
    ASSERT_TRUE(IsOk(node_->Start(0)));
    for (const std::string name : {"cpu", "memory"}) {
      ASSERT_TRUE(IsOk(node_->StartPlugin(name, name, kSamples + name + ".yaml")));
    }
  }
  StatusOr<std::string> DryRun(const std::string& manifest, const std::string& format = "table") {
    std::ofstream(manifest_) << manifest;
    return node_->Qrmctl({"admit", "--dry-run", "-f", manifest_, "-o", format});
  }
  /// The decision about the pod's container, by a dry run or by `explain`.
  static Json DecisionIn(const StatusOr<std::string>& output) {
    EXPECT_TRUE(output.ok()) << output.status();
    const Json document = Json::parse(output.value_or("{}"), nullptr, false);
    return document.is_object() && document.contains("decisions")
               ? document["decisions"].back()["decision"]
               : Json::object();
  }
  void WaitForReconciles() {
    const auto runs = [this] {
      const auto status = node_->GetStatus();
      return status.ok() ? status->reconcile().runs() : 0;
    };
    const uint64_t before = runs();
    EXPECT_TRUE(Await([&] { return runs() >= before + 3; }));
  }
  /// The files of qrmd and the plugins, and their answers.
  std::map<std::string, std::string> EverythingKept() {
    std::map<std::string, std::string> kept;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(work_dir_ + "/state")) {
      if (entry.is_regular_file() && entry.path().extension() != ".db-shm") {
        std::ifstream file(entry.path(), std::ios::binary);
        kept[entry.path()] = {std::istreambuf_iterator<char>(file), {}};
      }
    }
    for (const char* plugin : {"cpu", "memory"}) {
      kept[plugin] = node_->ExportState(plugin).value_or("no answer");
    }
    kept["pod resources"] = node_->ListPodResources()->ShortDebugString();
    kept["pods"] = node_->ListPods()->ShortDebugString();
    return kept;
  }

  TempDir dir_;
  const std::string work_dir_ = dir_ / "node";
  const std::string manifest_ = dir_ / "pod.yaml";
  const std::string kubelet_socket_ = dir_ / "pods-api.sock";
  std::unique_ptr<SimulatedRuntime> runtime_;
  std::unique_ptr<Node> node_;
};

TEST_F(DryRunTest, SaysWhatTheAdmissionThatFollowsDecides) {
  for (const PodSpec& pod :
       {Pod("pod1", "storage-service", 20, 40), Pod("pod2", "reranker", 10, 20)}) {
    const Json dry = DecisionIn(DryRun(Manifest(pod), "json"));
    EXPECT_EQ(dry["result"], "admitted");
    ASSERT_TRUE(IsOk(runtime_->RunPod(pod)));
    const Json real = DecisionIn(node_->Qrmctl({"explain", pod.name, "-o", "json"}));
    EXPECT_EQ(dry["hints"], real["hints"]);
    EXPECT_EQ(dry["merged"], real["merged"]);
    EXPECT_EQ(dry["merged"]["cpu"]["nodes"].size(), 1U) << dry;
    EXPECT_EQ(dry["merged"]["cpu"], dry["merged"]["memory"]);
    EXPECT_EQ(dry["requests"]["cpu"]["amount"], real["requests"]["cpu"]["amount"]);
    EXPECT_TRUE(real.contains("allocations"));
    EXPECT_FALSE(dry.contains("allocations"));
  }
}

TEST_F(DryRunTest, AsksAboutAllContainersOnceKubeletReportsSpecs) {
  ScriptedKubelet kubelet(kubelet_socket_);
  const PodSpec pod = Pod("pod1", "storage-service", 20, 40);
  kubelet.Put(pod.uid, KubeletsWord(pod, {"logger"}));
  StatusOr<std::string> dry;
  ASSERT_TRUE(Await([&] {
    dry = DryRun(Manifest(pod, {"logger"}));
    return dry.ok() && dry->find("kubelet does not report pod specs") == std::string::npos;
  })) << dry.status();
  std::cout << *dry;
  EXPECT_THAT(*dry, AllOf(HasSubstr("container container0: would be admitted\n  Placed together "
                                    "with\n    logger\n"),
                          HasSubstr("container logger: would be admitted\n"),
                          HasSubstr("for each container without the pod's other containers")));
  ASSERT_TRUE(IsOk(runtime_->RunPod(pod)));
  EXPECT_EQ(node_->ListPods()->pods(0).containers_size(), 2);
}

TEST_F(DryRunTest, ChangesNothing) {
  ASSERT_TRUE(IsOk(runtime_->RunPod(Pod("pod1", "storage-service", 20, 40))));
  WaitForReconciles();
  const auto before = EverythingKept();
  EXPECT_GT(before.size(), 6U);
  const auto admitted = DryRun(Manifest(Pod("pod2", "reranker", 10, 20)));
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_THAT(*admitted,
              AllOf(HasSubstr("default/pod2 would be admitted\n"),
                    HasSubstr("\ncontainer container0: would be admitted\n"),
                    HasSubstr("cpu:      10 (from manifest)"), HasSubstr("  Merged by policy"),
                    HasSubstr("  Not done\n    allocate cpu, allocate memory, commit\n"),
                    HasSubstr("note: nothing is reserved"),
                    HasSubstr("note: kubelet does not report pod specs to qrmd now")));
  EXPECT_FALSE(DryRun(Manifest(Pod("pod3", "storage-service", 200, 40))).ok());
  WaitForReconciles();
  EXPECT_EQ(EverythingKept(), before);
  EXPECT_FALSE(node_->Qrmctl({"explain", "pod2"}).ok()) << "no trace is kept";
  EXPECT_EQ(runtime_->updates(), 0U);
  std::cout << *admitted;
}

TEST_F(DryRunTest, IsAnErrorWhileQrmdIsNotReady) {
  runtime_.reset();
  Status dry;
  EXPECT_TRUE(Await([&] {
    dry = DryRun(Manifest(Pod("pod1", "storage-service", 20, 40))).status();
    return MessageOf(dry).find("while qrmd is not ready: not attached") != std::string::npos;
  })) << dry;
}

TEST_F(DryRunTest, FailsWithTheReasonOfTheAdmissionThatFollows) {
  const PodSpec pod = Pod("pod3", "storage-service", 200, 40);
  const Status dry = DryRun(Manifest(pod)).status();
  std::cout << MessageOf(dry);
  const Status real = runtime_->RunPod(pod);
  ASSERT_FALSE(dry.ok());
  ASSERT_FALSE(real.ok());
  const std::string reason = MessageOf(real).substr(MessageOf(real).find("cannot admit"));
  EXPECT_THAT(MessageOf(dry), AllOf(HasSubstr("default/pod3 would be rejected\n"),
                                    HasSubstr("qrmctl admit: " + reason + "\n")));
}

}  // namespace
}  // namespace qrm::test::dry_run_test
