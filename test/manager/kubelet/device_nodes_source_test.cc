// Kubelet's NUMA nodes of a pod's devices, over a real socket.
#include "manager/kubelet/device_nodes_source.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/mutex.h"
#include "plugins/rules/device_nodes.h"
#include "test/support/await.h"
#include "test/support/fake_pod_resources.h"
#include "test/support/loop_thread.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::device_nodes_source_test {
namespace {

using rules::DeviceNodes;
using rules::kDeviceNodesAnnotation;
using rules::NodesByResource;
using test::Await;
using test::FakeKubelet;
using testing::ElementsAre;
using testing::Pair;

placement::ContainerDemand Demand(const std::string& container, const std::string& resource) {
  placement::ContainerDemand demand;
  demand.pod.uid = "uid-engine";
  demand.pod.pod_namespace = "ml";
  demand.pod.name = "engine";
  demand.container = container;
  demand.requests = {{"cpu", 4}, {resource, 1}};
  return demand;
}

/// Answers within the call.
class KnownDemands final : public DemandSource {
 public:
  void Find(const RuntimePod&, const RuntimeContainer& container, Deadline, Found found) override {
    found(demands.at(container.name));
  }

  std::map<std::string, StatusOr<placement::ContainerDemand>> demands;
};

class DeviceNodesSourceTest : public testing::Test {
 protected:
  void TearDown() override {
    Stop();
    loop_.Stop();
  }

  void Stop() {
    if (source_ != nullptr) {
      loop_.Run([this] { source_->Stop(); });
    }
  }

  void Start(std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
    source_ = std::make_unique<DeviceNodesSource>(
        loop_.io(), inner_,
        DeviceNodesOptions{
            .kubelet_socket = socket_,
            .timeout = timeout,
            .is_served = [](const std::string& name) { return name == "a.io/nic"; }});
  }

  void Ask(const std::string& container) {
    RuntimePod pod;
    pod.uid = "uid-engine";
    RuntimeContainer made;
    made.name = container;
    source_->Find(pod, made, DeadlineAfter(std::chrono::seconds(30)),
                  [this, container](StatusOr<placement::ContainerDemand> answer) {
                    const MutexLock lock(mutex_);
                    order_.push_back(container);
                    answers_.insert_or_assign(container, std::move(answer));
                  });
  }

  std::vector<std::string> Order() {
    const MutexLock lock(mutex_);
    return order_;
  }

  /// Asks about `demand`, and returns the answer.
  placement::ContainerDemand AnswerTo(const placement::ContainerDemand& demand) {
    inner_.demands.insert_or_assign(demand.container, demand);
    Ask(demand.container);
    EXPECT_TRUE(Await([&] { return !Order().empty(); }));
    const MutexLock lock(mutex_);
    return answers_.at(demand.container).value_or(placement::ContainerDemand());
  }

  test::TempDir dir_;
  const std::string socket_ = dir_ / "kubelet.sock";
  FakeKubelet kubelet_{socket_};
  test::LoopThread loop_;
  KnownDemands inner_;
  std::unique_ptr<DeviceNodesSource> source_;
  Mutex mutex_;
  std::vector<std::string> order_ QRM_GUARDED_BY(mutex_);
  std::map<std::string, StatusOr<placement::ContainerDemand>> answers_ QRM_GUARDED_BY(mutex_);
};

TEST_F(DeviceNodesSourceTest, ReportsEachContainerWhereThePodsDevicesAre) {
  kubelet_.AddDevice({"other", "engine", "main"}, {"nvidia.com/gpu", "gpu-3", {3}});
  kubelet_.AddDevice({"ml", "engine", "main"}, {"nvidia.com/gpu", "gpu-0", {1}});
  kubelet_.AddDevice({"ml", "engine", "main"}, {"nvidia.com/gpu", "gpu-1", {2}});
  kubelet_.AddDevice({"ml", "engine", "main"}, {"nvidia.com/gpu", "gpu-2", {-1}});
  kubelet_.AddDevice({"ml", "engine", "helper"}, {"intel.com/qat", "q", {0, 1}});
  kubelet_.AddDevice({"ml", "engine", "helper"}, {"a.io/unknown", "x"});
  Start();
  placement::ContainerDemand demand = Demand("main", "nvidia.com/gpu");
  demand.others = {Demand("helper", "intel.com/qat")};
  const placement::ContainerDemand answer = AnswerTo(demand);
  const DeviceNodes devices = rules::ReadDeviceNodes(answer.pod.annotations);
  EXPECT_THAT(devices, ElementsAre(Pair("helper", NodesByResource{{"intel.com/qat", {0, 1}}}),
                                   Pair("main", NodesByResource{{"nvidia.com/gpu", {1, 2}}})));
  ASSERT_EQ(answer.others.size(), 1U);
  EXPECT_EQ(answer.others[0].pod.annotations, answer.pod.annotations);
}

TEST_F(DeviceNodesSourceTest, WhatAPodSaysOfItselfIsDropped) {
  Start();
  for (const char* resource : {"memory", "nvidia.com/gpu"}) {
    placement::ContainerDemand demand = Demand("main", resource);
    demand.pod.annotations = {{kDeviceNodesAnnotation, R"({"main":{"nvidia.com/gpu":"0"}})"},
                              {"a", "b"}};
    demand.others = {demand};
    const placement::ContainerDemand answer = AnswerTo(demand);
    EXPECT_THAT(*answer.pod.annotations, ElementsAre(Pair("a", "b"))) << resource;
    EXPECT_THAT(*answer.others.at(0).pod.annotations, ElementsAre(Pair("a", "b"))) << resource;
  }
}

TEST_F(DeviceNodesSourceTest, KubeletIsAskedOnlyForWhatItHandsOut) {
  Start();
  AnswerTo(Demand("main", "memory"));
  AnswerTo(Demand("main", "a.io/nic"));
  EXPECT_EQ(kubelet_.lists(), 0);
  placement::ContainerDemand demand = Demand("main", "memory");
  demand.others = {Demand("helper", "nvidia.com/gpu")};
  Ask("main");
  inner_.demands.insert_or_assign("main", demand);
  Ask("main");
  EXPECT_TRUE(Await([&] { return Order().size() == 4; }));
  EXPECT_EQ(kubelet_.lists(), 1);
}

TEST_F(DeviceNodesSourceTest, AKubeletThatHangsDelaysTheAnswerByItsTimeoutOnly) {
  kubelet_.AddDevice({"ml", "engine", "main"}, {"nvidia.com/gpu", "gpu-0", {1}});
  kubelet_.Hang();
  Start(std::chrono::milliseconds(50));
  const placement::ContainerDemand answer = AnswerTo(Demand("main", "nvidia.com/gpu"));
  EXPECT_EQ(answer.container, "main");
  EXPECT_TRUE(answer.pod.annotations.empty());
}

TEST_F(DeviceNodesSourceTest, AnswersAboutOnePodComeInTheOrderOfTheQuestions) {
  Start();
  kubelet_.Hang();
  inner_.demands = {{"gpu", Demand("gpu", "nvidia.com/gpu")}, {"plain", Demand("plain", "memory")}};
  Ask("gpu");
  Ask("plain");
  Ask("gpu");
  ASSERT_TRUE(Await([&] { return kubelet_.lists() == 2; }));
  EXPECT_THAT(Order(), ElementsAre());
  kubelet_.Release();
  ASSERT_TRUE(Await([&] { return Order().size() == 3; }));
  EXPECT_THAT(Order(), ElementsAre("gpu", "plain", "gpu"));
}

TEST_F(DeviceNodesSourceTest, FailuresOfTheSpecsAreReportedAsTheyAre) {
  Start();
  inner_.demands.insert_or_assign("main", Status(StatusCode::kInvalidArgument, "no such pod"));
  Ask("main");
  const MutexLock lock(mutex_);
  EXPECT_EQ(MessageOf(answers_.at("main").status()), "no such pod");
}

TEST_F(DeviceNodesSourceTest, NoRequestIsAnsweredOnceItHasStopped) {
  Start();
  kubelet_.Hang();
  inner_.demands.insert_or_assign("gpu", Demand("gpu", "nvidia.com/gpu"));
  Ask("gpu");
  ASSERT_TRUE(Await([&] { return kubelet_.lists() == 1; }));
  Stop();
  Ask("gpu");
  loop_.Run([] {});
  EXPECT_THAT(Order(), ElementsAre());
}

}  // namespace
}  // namespace qrm::manager::device_nodes_source_test
