#include "plugins/placement/device_hints.h"

#include <cstddef>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/sample_node.h"

namespace qrm::placement::device_hints_test {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

std::vector<std::string> TextOf(const HintList& hints) {
  std::vector<std::string> texts;
  for (const TopologyHint& hint : hints.hints()) {
    texts.push_back(ToString(hint.nodes) + (hint.preferred ? "!" : ""));
  }
  return texts;
}

TEST(DeviceHintsTest, TheFirstNodeOfADeviceIsPreferred) {
  const Machine machine = test::SampleMachine(4);
  EXPECT_THAT(TextOf(HintsOfDevice(machine, {2, 0, 2})), ElementsAre("2!", "0"));
}

TEST(DeviceHintsTest, ADeviceWithoutANodeOfTheMachineHasNoPreference) {
  const Machine machine = test::SampleMachine(2);
  EXPECT_TRUE(HintsOfDevice(machine, {}).IsNoPreference());
  EXPECT_TRUE(HintsOfDevice(machine, {7}).IsNoPreference());
  EXPECT_TRUE(HintsOfDevices(machine, {{}, {7}}).IsNoPreference());
}

TEST(DeviceHintsTest, SeveralDevicesPreferTheNodesThatAllAreNearTo) {
  const Machine machine = test::SampleMachine(4);
  EXPECT_THAT(TextOf(HintsOfDevices(machine, {{0, 1, 2}, {1, 2}, {}})), ElementsAre("1!", "2!"));
}

// As kubelet: of devices on nodes 0-1, 1-2 and 3, nodes 1 and 3 serve all, and so do no other two.
TEST(DeviceHintsTest, DevicesWithoutANodeInCommonPreferTheFewestNodesThatServeAll) {
  const Machine machine = test::SampleMachine(4);
  EXPECT_THAT(TextOf(HintsOfDevices(machine, {{0}, {3}})), ElementsAre("0,3!"));
  EXPECT_THAT(TextOf(HintsOfDevices(machine, {{0, 1}, {1, 2}, {3}})), ElementsAre("1,3!"));
  EXPECT_THAT(TextOf(HintsOfDevices(machine, {{0, 1}, {2, 3}})),
              UnorderedElementsAre("0,2!", "0,3!", "1-2!", "1,3!"));
}

TEST(DeviceHintsTest, DevicesOnVeryManyNodesPreferAllOfThem) {
  const Machine machine = test::SampleMachine(16, 1);
  std::vector<NumaMask> devices(16);
  for (std::size_t node = 0; node < devices.size(); ++node) {
    devices[node].Add(static_cast<int>(node));
  }
  EXPECT_THAT(TextOf(HintsOfDevices(machine, devices)), ElementsAre("0-15!"));
}

}  // namespace
}  // namespace qrm::placement::device_hints_test
