// Interfaces in rtnetlink's bytes, also when these are damaged.
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include "plugins/nic/namespace_sockets.h"
#include "test/plugins/nic/netlink_bytes.h"
#include "test/support/temp_dir.h"

namespace qrm::nic::link_table_test {
namespace {

using test::Attribute;
using test::BytesOf;
using test::Message;
using testing::ElementsAre;
using testing::IsEmpty;

std::string LinkMessage(uint32_t flags, uint8_t state) {
  ifinfomsg header = {};
  header.ifi_index = 7;
  header.ifi_flags = flags;
  return Message(RTM_NEWLINK, 0,
                 BytesOf(header) + Attribute(IFLA_IFNAME, std::string_view("eth0\0", 5)) +
                     Attribute(IFLA_OPERSTATE, BytesOf(state)) +
                     Attribute(IFLA_PARENT_DEV_BUS_NAME, std::string_view("pci\0", 4)) +
                     Attribute(IFLA_PARENT_DEV_NAME, std::string_view("0000:3b:00.0\0", 13)));
}

/// The message of 192.0.2.1, with the address of a point-to-point link's other end.
std::string AddressMessage(uint32_t flags) {
  constexpr std::string_view kPeer("\xC0\x00\x02\x09", 4);
  ifaddrmsg header = {};
  header.ifa_family = AF_INET;
  header.ifa_index = 7;
  return Message(RTM_NEWADDR, 0,
                 BytesOf(header) + Attribute(IFA_ADDRESS, kPeer) +
                     Attribute(IFA_LOCAL, std::string_view("\xC0\x00\x02\x01", 4)) +
                     Attribute(IFA_FLAGS, BytesOf(flags)));
}

std::string AddressMessage6(uint8_t scope) {
  ifaddrmsg header = {};
  header.ifa_family = AF_INET6;
  header.ifa_scope = scope;
  header.ifa_index = 7;
  return Message(RTM_NEWADDR, 0,
                 BytesOf(header) + Attribute(IFA_ADDRESS, BytesOf(in6addr_loopback)));
}

LinkTable TableOf(std::string_view datagram) {
  LinkTable table;
  for (const NetlinkMessage& message : SplitMessages(datagram)) {
    table.Take(message);
  }
  return table;
}

TEST(LinkTableTest, ReadsNameDeviceStateAndOwnAddress) {
  LinkTable table = TableOf(LinkMessage(IFF_UP, IF_OPER_UP) + AddressMessage(IFA_F_PERMANENT) +
                            AddressMessage6(RT_SCOPE_HOST));
  const Link& link = table.links().at(7);
  EXPECT_EQ(link.name, "eth0");
  EXPECT_EQ(link.bus, "pci");
  EXPECT_EQ(link.device, "0000:3b:00.0");
  EXPECT_TRUE(link.facts.up && link.facts.has_link);
  EXPECT_THAT(link.facts.ipv4, ElementsAre("192.0.2.1"));
  EXPECT_THAT(link.facts.ipv6, ElementsAre("::1"));
}

TEST(LinkTableTest, ALinkIsThereWhenTheDeviceIsUpAndSaysNothingElse) {
  const auto has_link = [](uint32_t flags, uint8_t state) {
    return TableOf(LinkMessage(flags, state)).links().at(7).facts.has_link;
  };
  EXPECT_TRUE(has_link(IFF_UP, IF_OPER_UNKNOWN));
  EXPECT_FALSE(has_link(0, IF_OPER_UNKNOWN));
  EXPECT_FALSE(has_link(IFF_UP, IF_OPER_DOWN));
  EXPECT_FALSE(has_link(IFF_UP, IF_OPER_LOWERLAYERDOWN));
  EXPECT_FALSE(has_link(IFF_UP, IF_OPER_DORMANT));
}

TEST(LinkTableTest, LeavesOutAddressesOfNoUse) {
  const std::string up = LinkMessage(IFF_UP, IF_OPER_UP);
  const auto addresses = [&](uint32_t flags) {
    return TableOf(up + AddressMessage(flags)).links().at(7).facts.ipv4;
  };
  EXPECT_THAT(addresses(IFA_F_DEPRECATED), ElementsAre("192.0.2.1"));
  EXPECT_THAT(addresses(IFA_F_TENTATIVE), IsEmpty());
  EXPECT_THAT(addresses(IFA_F_DADFAILED), IsEmpty());
  EXPECT_THAT(addresses(IFA_F_TEMPORARY), IsEmpty());
  EXPECT_THAT(TableOf(up + AddressMessage6(RT_SCOPE_LINK)).links().at(7).facts.ipv6, IsEmpty());
}

TEST(LinkTableTest, TakesNothingFromBeyondTheBytes) {
  const std::string whole = LinkMessage(IFF_UP, IF_OPER_UP) + AddressMessage(0);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string cut =
        whole.substr(0, length);  // a separate buffer, for the address sanitizer
    LinkTable table = TableOf(cut);
    for (const auto& [index, link] : table.links()) {
      EXPECT_EQ(link.name, "eth0");
      EXPECT_THAT(link.facts.ipv4, IsEmpty());
    }
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = '\xFF';
    TableOf(damaged);
  }
  EXPECT_THAT(TableOf(AddressMessage(0)).links(), IsEmpty());
}

TEST(NodeOfDeviceTest, IsThatOfTheDeviceOrOfWhatItIsPluggedInto) {
  namespace fs = std::filesystem;
  const test::TempDir sysfs;
  const fs::path card = sysfs / "devices/pci0000:3a/0000:3b:00.0";
  fs::create_directories(card / "virtio0");
  std::ofstream(card / "numa_node") << "1\n";
  for (const char* bus : {"pci", "virtio"}) {
    fs::create_directories(sysfs / "bus" + "/" + bus + "/devices");
  }
  fs::create_symlink(card, sysfs / "bus/pci/devices/0000:3b:00.0");
  fs::create_symlink(card / "virtio0", sysfs / "bus/virtio/devices/virtio0");
  EXPECT_EQ(NodeOfDevice("pci", "0000:3b:00.0", sysfs.path()), 1);
  EXPECT_EQ(NodeOfDevice("virtio", "virtio0", sysfs.path()), 1);
  EXPECT_EQ(NodeOfDevice("pci", "0000:00:00.0", sysfs.path()), std::nullopt);
  EXPECT_EQ(NodeOfDevice("", "", sysfs.path()), std::nullopt);
  std::ofstream(card / "numa_node") << "-1\n";
  EXPECT_EQ(NodeOfDevice("pci", "0000:3b:00.0", sysfs.path()), std::nullopt);
}

}  // namespace
}  // namespace qrm::nic::link_table_test
