#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/admission/admitter_fixture.h"

namespace qrm::manager::near_device_test {
namespace {

using test::AdmitterTest;
using test::Demand;
using test::Gives;
using test::Pin;
using test::PluginScript;
using testing::HasSubstr;

/// The plugins' hints: either node, or only one of them.
PluginScript Hinting(const std::string& resource, ResourceAllocation gives,
                     const std::vector<int>& nodes) {
  PluginScript script = Gives(resource, std::move(gives));
  std::vector<TopologyHint> hints(nodes.size());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    hints[i] = {.nodes = {nodes[i]}, .preferred = true};
  }
  script.hints = HintList(std::move(hints));
  return script;
}

class NearDeviceTest : public AdmitterTest {
 protected:
  /// The nodes of the hint that the cpu plugin gets, whose own hints are `cpus`; the device is near
  /// to `device`, and attached to the first of them.
  NumaMask HintOfCpus(const std::vector<int>& cpus, const std::vector<int>& device, bool binding,
                      TopologyPolicy policy = TopologyPolicy::kSingleNumaNode) {
    plugins_.Set("cpu", Hinting("cpu", Pin(kCpusetCpus, cpus.front() == 0 ? "0-1" : "4-5"), cpus));
    plugins_.Set("memory", Hinting("memory", Pin(kCpusetMems, "0"), {0, 1}));
    placement::ContainerDemand demand = Demand();
    std::vector<TopologyHint> hints(device.size());
    for (std::size_t i = 0; i < device.size(); ++i) {
      hints[i] = {.nodes = {device[i]}, .preferred = i == 0};
    }
    demand.devices = {{"claim gpu", {.hints = HintList(std::move(hints)), .binding = binding}}};
    admitted_ = Admit(demand, {.merge = {.policy = policy}}).status();
    if (!admitted_.ok()) {
      return {};
    }
    return plugins_.allocated("cpu").hint.value_or(TopologyHint()).nodes;
  }

  Status admitted_;
};

TEST_F(NearDeviceTest, CpusGoToTheNodeOfTheDevice) {
  EXPECT_EQ(HintOfCpus({0, 1}, {1}, true), NumaMask({1}));
  EXPECT_EQ(LastTrace()["hints"]["claim gpu"][0]["nodes"][0], 1);
  EXPECT_EQ(HintOfCpus({0, 1}, {1}, false, TopologyPolicy::kBestEffort), NumaMask({1}));
}

TEST_F(NearDeviceTest, AnotherNodeThatTheDeviceIsNearToServesWhereTheFirstHasNoRoom) {
  EXPECT_EQ(HintOfCpus({1}, {0, 1}, false), NumaMask({1}));
  EXPECT_EQ(HintOfCpus({1}, {0, 1}, false, TopologyPolicy::kBestEffort), NumaMask({1}));
}

TEST_F(NearDeviceTest, ADeviceThatBindsRejectsTheContainerUnderAStrictPolicy) {
  EXPECT_EQ(HintOfCpus({0}, {1}, true), NumaMask());
  EXPECT_EQ(admitted_.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(HintOfCpus({0}, {1}, true, TopologyPolicy::kRestricted), NumaMask());
}

TEST_F(NearDeviceTest, AContainerWithoutRoomNearItsDeviceIsPlacedWithoutIt) {
  EXPECT_EQ(HintOfCpus({0}, {1}, false), NumaMask({0}));
  EXPECT_THAT(LastTrace()["merge_reasons"].dump(), HasSubstr("claim gpu: left out"));
  EXPECT_EQ(HintOfCpus({0}, {1}, true, TopologyPolicy::kBestEffort), NumaMask({0}));
}

TEST_F(NearDeviceTest, ADeviceWithoutAKnownNodeIsShownAndChangesNothing) {
  placement::ContainerDemand demand = Demand();
  demand.devices = {{"claim gpu", {.hints = HintList::NoPreference()}}};
  ASSERT_TRUE(Admit(demand, {.merge = {.policy = TopologyPolicy::kSingleNumaNode}}).ok());
  EXPECT_EQ(LastTrace()["hints"]["claim gpu"], "none: the NUMA node of the device is not known");
}

}  // namespace
}  // namespace qrm::manager::near_device_test
