// Kubelet's NUMA nodes of a pod's devices, over a real socket.
#include "manager/kubelet/device_nodes_source.h"

#include <filesystem>
#include <fstream>
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

/// Four nodes with a CPU each.
Machine FourNodes() {
  MachineParts parts;
  for (int node = 0; node < 4; ++node) {
    parts.cpus.push_back({.id = node, .core = node, .l3 = node, .node = node});
    parts.nodes.push_back({.id = node});
  }
  return Machine(std::move(parts));
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

  void Start(std::chrono::milliseconds timeout = std::chrono::seconds(20),
             std::chrono::milliseconds claims_wait = std::chrono::seconds(20)) {
    claims_.Start();
    source_ = std::make_unique<DeviceNodesSource>(
        loop_.io(), inner_, machine_, claims_,
        DeviceNodesOptions{.kubelet_socket = socket_,
                           .timeout = timeout,
                           .is_served = [](const std::string& name) { return name == "a.io/nic"; },
                           .claims_wait = claims_wait});
  }

  /// A CDI specification by which the device of claim "gpu" is the disk of node 1.
  void WriteSpecification() {
    std::filesystem::create_directories(dir_ / "sys/devices/pci0/0000:41:00.0/disk");
    std::filesystem::create_directories(dir_ / "sys/dev/block");
    std::filesystem::create_directories(dir_ / "cdi");
    std::ofstream(dir_ / "sys/devices/pci0/0000:41:00.0/numa_node") << "1";
    std::filesystem::create_directory_symlink(
        std::filesystem::absolute(dir_ / "sys/devices/pci0/0000:41:00.0/disk"),
        dir_ / "sys/dev/block/259:0");
    std::ofstream(dir_ / "cdi/a.json")
        << R"({"kind": "a.io/gpu", "devices": [{"name": "c", "containerEdits": {"deviceNodes":
              [{"path": "/dev/nvme0n1", "type": "b", "major": 259, "minor": 0}]}}]})";
  }

  void Ask(const std::string& container) {
    RuntimePod pod;
    pod.uid = "uid-engine";
    RuntimeContainer made;
    made.name = container;
    made.cdi_devices = cdi_devices_;
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
  const Machine machine_ = FourNodes();
  std::vector<std::string> cdi_devices_;
  ClaimDevices claims_{
      {.node_name = "n", .attributes = {}, .cdi_dirs = {dir_ / "cdi"}, .sysfs = dir_ / "sys"}};
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

TEST_F(DeviceNodesSourceTest, DevicesOfOneResourcePreferEachNodeThatAllOfThemAreNearTo) {
  kubelet_.AddDevice({"ml", "engine", "main"}, {"nvidia.com/gpu", "gpu-0", {1, 2}});
  kubelet_.AddDevice({"ml", "engine", "main"}, {"nvidia.com/gpu", "gpu-1", {2}});
  kubelet_.AddDevice({"ml", "engine", "main"}, {"intel.com/qat", "q0", {0}});
  kubelet_.AddDevice({"ml", "engine", "main"}, {"intel.com/qat", "q1", {3}});
  kubelet_.AddDevice({"ml", "engine", "main"}, {"a.io/unknown", "x"});
  Start();
  const placement::ContainerDemand answer = AnswerTo(Demand("main", "nvidia.com/gpu"));
  using placement::GivenDevice;
  EXPECT_THAT(answer.devices,
              ElementsAre(Pair("a.io/unknown", GivenDevice{.hints = HintList::NoPreference()}),
                          Pair("intel.com/qat", GivenDevice{.hints = HintList({{{0, 3}, true}})}),
                          Pair("nvidia.com/gpu", GivenDevice{.hints = HintList({{{2}, true}})})));
}

TEST_F(DeviceNodesSourceTest, ADeviceOfAClaimIsFoundByItsSpecificationAndDoesNotBind) {
  WriteSpecification();
  kubelet_.AddClaim({"ml", "engine", "main"}, {"gpu", "drv", "n", "d0", {"a.io/gpu=c"}});
  Start();
  placement::ContainerDemand demand = Demand("main", "memory");
  demand.uses_claims = true;
  const placement::ContainerDemand answer = AnswerTo(demand);
  EXPECT_THAT(answer.devices,
              ElementsAre(Pair(
                  "claim gpu: drv/n/d0",
                  placement::GivenDevice{.hints = HintList({{{1}, true}}), .binding = false})));
  EXPECT_THAT(rules::ReadDeviceNodes(answer.pod.annotations),
              ElementsAre(Pair("main", NodesByResource{{"drv", {1}}})));
}

TEST_F(DeviceNodesSourceTest, ADeviceOfAClaimBindsWhereThePodAsksForIt) {
  WriteSpecification();
  kubelet_.AddClaim({"ml", "engine", "main"}, {"gpu", "drv", "n", "d0", {"a.io/gpu=c"}});
  Start();
  placement::ContainerDemand demand = Demand("main", "memory");
  demand.uses_claims = true;
  demand.pod.annotations = {{"qrm.io/claim-alignment", "required"}};
  EXPECT_TRUE(AnswerTo(demand).devices.at("claim gpu: drv/n/d0").binding);
}

TEST_F(DeviceNodesSourceTest, DevicesThatTheRuntimeNamesAreFoundWithoutKubelet) {
  WriteSpecification();
  cdi_devices_ = {"a.io/gpu=c"};
  kubelet_.Hang();
  Start(std::chrono::milliseconds(20), std::chrono::seconds(20));
  const placement::ContainerDemand answer = AnswerTo(Demand("main", "nvidia.com/gpu"));
  EXPECT_EQ(answer.devices.at("device a.io/gpu=c").hints, HintList({{{1}, true}}));
}

TEST_F(DeviceNodesSourceTest, AKubeletThatHangsDelaysAContainerWithClaimsByTheirWaitOnly) {
  kubelet_.Hang();
  Start(std::chrono::hours(1), std::chrono::milliseconds(20));
  placement::ContainerDemand demand = Demand("main", "memory");
  demand.uses_claims = true;
  EXPECT_THAT(AnswerTo(demand).devices, testing::IsEmpty());
}

TEST_F(DeviceNodesSourceTest, ADeviceThatIsFoundTooLateIsUnknown) {
  kubelet_.AddClaim({"ml", "engine", "main"}, {"gpu", "drv", "n", "d0", {"a.io/gpu=c"}});
  Start(std::chrono::hours(1), std::chrono::milliseconds(0));
  claims_.Stop();  // it never answers
  placement::ContainerDemand demand = Demand("main", "nvidia.com/gpu");
  demand.uses_claims = true;
  EXPECT_TRUE(AnswerTo(demand).devices.at("claim gpu: drv/n/d0").hints.IsNoPreference());
}

TEST_F(DeviceNodesSourceTest, NodesThatTheMachineDoesNotHaveAreUnknown) {
  kubelet_.AddDevice({"ml", "engine", "main"}, {"nvidia.com/gpu", "gpu-0", {63}});
  Start();
  EXPECT_TRUE(AnswerTo(Demand("main", "nvidia.com/gpu"))
                  .devices.at("nvidia.com/gpu")
                  .hints.IsNoPreference());
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
