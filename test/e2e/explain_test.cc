// What `qrmctl explain` shows of a pod whose containers were placed together.
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/proto/core/v1/pod.pb.h"
#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/temp_dir.h"

namespace qrm::test::explain_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRoleLabel[] = "katalyst.kubewharf.io/pod_role";

/// Two containers, main and helper, that want CPUs and memory of one NUMA node.
class PodOfTwo {
 public:
  PodOfTwo(const std::string& name, int main_cpus, int helper_cpus)
      : spec_{.name = name,
              .uid = "uid-" + name,
              .labels = {{kRoleLabel, "storage-service"}},
              .container = Container("main", main_cpus)},
        helper_(Container("helper", helper_cpus)) {}

  const PodSpec& spec() const { return spec_; }
  const ContainerSpec& helper() const { return helper_; }

  /// How kubelet reports the pod.
  std::string KubeletsWord() const {
    ::k8s::io::api::core::v1::Pod pod;
    pod.ParseFromString(PodMessage(spec_.uid, spec_.name, "0"));
    (*pod.mutable_metadata()->mutable_labels())[kRoleLabel] = spec_.labels.at(kRoleLabel);
    pod.mutable_spec()->clear_containers();
    for (const ContainerSpec& container : {spec_.container, helper_}) {
      auto& message = *pod.mutable_spec()->add_containers();
      message.set_name(container.name);
      auto& requests = *message.mutable_resources()->mutable_requests();
      requests["cpu"].set_string(std::to_string(container.milli_cpus) + "m");
      requests["memory"].set_string(std::to_string(container.memory_bytes));
    }
    return pod.SerializeAsString();
  }

 private:
  static ContainerSpec Container(const std::string& name, int64_t cpus) {
    return {.name = name, .milli_cpus = cpus * 1000, .memory_bytes = int64_t{4} << 30};
  }

  PodSpec spec_;
  ContainerSpec helper_;
};

class ExplainWholePodTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string samples = "docs/samples/example2/";
    node_ = std::make_unique<Node>(Node::Options{
        .bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
        .work_dir = dir_ / "node",
        .config = samples + "qrmd.yaml",
        .nri_socket = runtime_.nri_socket(),
        .cri_socket = runtime_.cri_socket(),
        .flags = {"--kubelet-pods-socket=" + kubelet_socket_, "--topology-scope=pod"}});
    ASSERT_TRUE(IsOk(node_->Start(0)));
    for (const std::string name : {"cpu", "memory"}) {
      ASSERT_TRUE(IsOk(node_->StartPlugin(name, name, samples + name + ".yaml")));
    }
    ASSERT_TRUE(Await([&] { return node_->HasFollowedKubelet(); }));
  }

  /// A rejection is recorded after it has been answered.
  std::string Explain(const std::string& pod) {
    StatusOr<std::string> text = std::string();
    EXPECT_TRUE(Await([&] {
      text = node_->Qrmctl({"explain", pod});
      return text.ok();
    })) << text.status();
    std::cout << text.value_or("");
    return text.value_or("");
  }

  TempDir dir_;
  const std::string kubelet_socket_ = dir_ / "pods-api.sock";
  ScriptedKubelet kubelet_{kubelet_socket_};
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST_F(ExplainWholePodTest, AdmittedPodIsReportedByContainerWithItsOneMerge) {
  const PodOfTwo pod("pod1", 12, 6);
  kubelet_.Put(pod.spec().uid, pod.KubeletsWord());
  ASSERT_TRUE(IsOk(runtime_.RunPod(pod.spec())));
  ASSERT_TRUE(IsOk(runtime_.AddContainer(pod.spec().name, pod.helper())));
  const std::string told = Explain("pod1");
  const std::size_t helper = told.find("container helper");
  ASSERT_NE(helper, std::string::npos);
  for (const std::string& part : {told.substr(0, helper), told.substr(helper)}) {
    EXPECT_THAT(part, AllOf(HasSubstr(": admitted at"), HasSubstr("(from pods-api)"),
                            HasSubstr("  Merged by policy single-numa-node for the whole pod\n"),
                            HasSubstr("  Given\n"), HasSubstr("  Took\n")));
  }
  EXPECT_THAT(told.substr(0, helper), HasSubstr("  Applied last\n"));
}

TEST_F(ExplainWholePodTest, RejectedPodIsReportedAsAWholeWithWhatItsContainersNeedTogether) {
  const PodOfTwo pod("pod2", 30, 20);  // each fits a NUMA node; both do not
  kubelet_.Put(pod.spec().uid, pod.KubeletsWord());
  ASSERT_FALSE(runtime_.RunPod(pod.spec()).ok());
  EXPECT_THAT(
      Explain("pod2"),
      AllOf(HasSubstr(": rejected at"), HasSubstr("cpu:      50 (from pods-api)"),
            HasSubstr("memory:   8Gi"), HasSubstr("its containers together: resource cpu: "),
            Not(HasSubstr("  Given\n"))));
}

}  // namespace
}  // namespace qrm::test::explain_test
