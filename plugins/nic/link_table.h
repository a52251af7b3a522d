// Builds interfaces from rtnetlink's messages.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "plugins/nic/facts.h"

namespace qrm::nic {

/// One message of the kernel, without its header.
struct NetlinkMessage {
  uint16_t type = 0;
  uint16_t flags = 0;
  std::string_view payload;
};

/// The messages of a datagram, up to the first that is cut off.
/// Source: netlink(7), struct nlmsghdr.
std::vector<NetlinkMessage> SplitMessages(std::string_view datagram);

/// A link as rtnetlink reports it.
struct Link {
  std::string name;
  std::string bus;     ///< of its device, such as "pci"; empty for virtual ones
  std::string device;  ///< its name there, such as "0000:3b:00.0"
  InterfaceFacts facts;
};

/// The interfaces of one namespace, from its dumps of links and addresses.
class LinkTable {
 public:
  /// Reads RTM_NEWLINK and RTM_NEWADDR, and ignores other messages and those that are cut off.
  /// Links come before their addresses. Source: rtnetlink(7).
  void Take(const NetlinkMessage& message);

  std::map<int, Link>& links() { return links_; }  ///< by the kernel's index

 private:
  void TakeLink(std::string_view payload);
  void TakeAddress(std::string_view payload);

  std::map<int, Link> links_;
};

}  // namespace qrm::nic
