// `qrmctl play`: a pod that is created over CRI, from its file to its allocations.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/process.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::test::play_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr char kSamples[] = "docs/samples/example2/";

std::string BinDir() {
  return std::filesystem::canonical("/proc/self/exe").parent_path();
}

// The second example of the samples: cpu and memory plugins, one NUMA node for each pod.
class PlayTest : public testing::Test {
 protected:
  void SetUp() override {
    runtime_ = std::make_unique<SimulatedRuntime>(dir_.path());
    node_ = std::make_unique<Node>(Node::Options{.bin_dir = BinDir(),
                                                 .work_dir = dir_ / "node",
                                                 .config = std::string(kSamples) + "qrmd.yaml",
                                                 .nri_socket = runtime_->nri_socket(),
                                                 .cri_socket = runtime_->cri_socket()});
    ASSERT_TRUE(IsOk(node_->Start(0)));
    for (const std::string name : {"cpu", "memory"}) {
      ASSERT_TRUE(IsOk(node_->StartPlugin(name, name, kSamples + name + ".yaml")));
    }
  }

  /// `resources` of its one container, in the braces of YAML.
  StatusOr<std::string> Play(const std::string& resources) {
    Write(resources);
    return node_->Qrmctl(Command());
  }
  std::vector<std::string> Command() const {
    return {"play", "-f", file_, "--runtime-endpoint", "unix://" + runtime_->cri_socket()};
  }
  void Write(const std::string& resources) {
    std::ofstream(file_) << "{apiVersion: v1, kind: Pod, metadata: {name: tried, labels: "
                            "{katalyst.kubewharf.io/pod_role: storage-service}}, spec: "
                            "{containers: [{name: main, image: some, resources: "
                         << resources << "}]}}";
  }

  TempDir dir_;
  const std::string file_ = dir_ / "pod.yaml";
  std::unique_ptr<SimulatedRuntime> runtime_;
  std::unique_ptr<Node> node_;
};

TEST_F(PlayTest, ShowsWhatThePodGotByItsFileAndWhyAndRemovesIt) {
  const auto shown = Play("{requests: {cpu: 20, memory: 40Gi}}");
  ASSERT_TRUE(IsOk(shown.status()));
  EXPECT_THAT(*shown, AllOf(HasSubstr("default/tried"),
                            HasSubstr("cpu=20 memory=40Gi (from announced)"), HasSubstr("Hints")));
  EXPECT_TRUE(Await([this] { return node_->ListPods()->pods().empty(); }));
}

TEST_F(PlayTest, FailsWithTheRejectionOfAPodAndLeavesNothingOfIt) {
  const auto refused = Play("{requests: {cpu: 1000, memory: 40Gi}}");
  EXPECT_THAT(MessageOf(refused.status()), AllOf(HasSubstr("cannot create container main"),
                                                 HasSubstr("container main: rejected at")));
  EXPECT_TRUE(Await([this] { return node_->ListPods()->pods().empty(); }));
}

TEST_F(PlayTest, RunsUntilItIsInterruptedTellsOfEndsAndRemovesThePodThen) {
  Write("{requests: {cpu: 20, memory: 40Gi}}");
  std::vector<std::string> command = Command();
  command.insert(command.begin(), BinDir() + "/qrmctl");
  command.insert(command.end(), {"--wait", "--control-socket", dir_ / "node/control.sock"});
  auto played = Process::Start(command, dir_ / "play.log");
  ASSERT_TRUE(IsOk(played.status()));
  EXPECT_TRUE(Await([&] {
    return (*played)->LastOutput().find("runs until this is interrupted") != std::string::npos;
  })) << (*played)->LastOutput();
  EXPECT_EQ(node_->ListPods()->pods_size(), 1);
  ASSERT_TRUE(IsOk(runtime_->EndContainer("tried", "main")));
  EXPECT_TRUE(Await([&] {
    return (*played)->LastOutput().find("container main has ended with exit code 0") !=
           std::string::npos;
  })) << (*played)->LastOutput();
  EXPECT_TRUE(IsOk((*played)->Terminate()));  // by SIGTERM
  EXPECT_TRUE(Await([this] { return node_->ListPods()->pods().empty(); }));
}

}  // namespace
}  // namespace qrm::test::play_test
