// Reads rtnetlink's messages without trusting their lengths.
#include "plugins/nic/link_table.h"

#include <algorithm>
#include <array>
#include <optional>

#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace qrm::nic {
namespace {

/// Addresses that cannot be bound yet, or that are about to be replaced.
constexpr uint32_t kUselessFlags = IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_TEMPORARY;

/// The T at the front of `bytes`, without alignment.
template <typename T>
std::optional<T> Read(std::string_view bytes) {
  T value;
  if (bytes.size() < sizeof value) {
    return std::nullopt;
  }
  bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

/// Removes `length` bytes and the padding to the next header from the front of `bytes`.
void Skip(std::string_view& bytes, std::size_t length) {
  bytes.remove_prefix(std::min(bytes.size(), std::size_t{NLMSG_ALIGN(length)}));
}

using Attributes = std::map<uint16_t, std::string_view>;

Attributes AttributesOf(std::string_view bytes) {
  Attributes attributes;
  for (auto header = Read<rtattr>(bytes); header.has_value(); header = Read<rtattr>(bytes)) {
    if (header->rta_len < sizeof *header || header->rta_len > bytes.size()) {
      break;
    }
    attributes[header->rta_type & NLA_TYPE_MASK] =
        bytes.substr(sizeof *header, header->rta_len - sizeof *header);
    Skip(bytes, header->rta_len);
  }
  return attributes;
}

std::string_view Find(const Attributes& attributes, uint16_t type) {
  const auto found = attributes.find(type);
  return found == attributes.end() ? std::string_view() : found->second;
}

/// Without the zero at the end.
std::string TextOf(std::string_view value) {
  return std::string(value.substr(0, value.find('\0')));
}

std::string AddressText(int family, std::string_view value) {
  std::array<char, INET6_ADDRSTRLEN> text = {};
  const std::size_t length = family == AF_INET ? sizeof(in_addr) : sizeof(in6_addr);
  if (value.size() != length) {
    return "";
  }
  const char* const written = inet_ntop(family, value.data(), text.data(), text.size());
  return written == nullptr ? "" : written;
}

/// Devices without this state (loopback, tunnels) work while they are up.
bool HasLink(uint32_t flags, const Attributes& attributes) {
  const uint8_t state = Read<uint8_t>(Find(attributes, IFLA_OPERSTATE)).value_or(IF_OPER_UNKNOWN);
  return (flags & IFF_UP) != 0 && (state == IF_OPER_UP || state == IF_OPER_UNKNOWN);
}

}  // namespace

std::vector<NetlinkMessage> SplitMessages(std::string_view datagram) {
  std::vector<NetlinkMessage> messages;
  for (auto header = Read<nlmsghdr>(datagram); header.has_value();
       header = Read<nlmsghdr>(datagram)) {
    if (header->nlmsg_len < sizeof *header || header->nlmsg_len > datagram.size()) {
      break;
    }
    messages.push_back(
        {.type = header->nlmsg_type,
         .flags = header->nlmsg_flags,
         .payload = datagram.substr(sizeof *header, header->nlmsg_len - sizeof *header)});
    Skip(datagram, header->nlmsg_len);
  }
  return messages;
}

void LinkTable::Take(const NetlinkMessage& message) {
  if (message.type == RTM_NEWLINK) {
    TakeLink(message.payload);
  } else if (message.type == RTM_NEWADDR) {
    TakeAddress(message.payload);
  }
}

void LinkTable::TakeLink(std::string_view payload) {
  const auto header = Read<ifinfomsg>(payload);
  if (!header.has_value()) {
    return;
  }
  Skip(payload, sizeof *header);
  const Attributes attributes = AttributesOf(payload);
  Link& link = links_[header->ifi_index];
  link.name = TextOf(Find(attributes, IFLA_IFNAME));
  link.bus = TextOf(Find(attributes, IFLA_PARENT_DEV_BUS_NAME));
  link.device = TextOf(Find(attributes, IFLA_PARENT_DEV_NAME));
  link.facts.up = (header->ifi_flags & IFF_UP) != 0;
  link.facts.has_link = HasLink(header->ifi_flags, attributes);
}

void LinkTable::TakeAddress(std::string_view payload) {
  const auto header = Read<ifaddrmsg>(payload);
  if (!header.has_value() || (header->ifa_family != AF_INET && header->ifa_family != AF_INET6) ||
      (header->ifa_family == AF_INET6 && header->ifa_scope == RT_SCOPE_LINK)) {
    return;
  }
  Skip(payload, sizeof *header);
  const Attributes attributes = AttributesOf(payload);
  const uint32_t flags =
      Read<uint32_t>(Find(attributes, IFA_FLAGS)).value_or(uint32_t{header->ifa_flags});
  const auto link = links_.find(static_cast<int>(header->ifa_index));
  if (link == links_.end() || (flags & kUselessFlags) != 0) {
    return;
  }
  // IFA_ADDRESS is the peer's address if the two differ.
  const std::string_view local = Find(attributes, IFA_LOCAL);
  const std::string text =
      AddressText(header->ifa_family, local.empty() ? Find(attributes, IFA_ADDRESS) : local);
  InterfaceFacts& facts = link->second.facts;
  if (!text.empty()) {
    (header->ifa_family == AF_INET ? facts.ipv4 : facts.ipv6).push_back(text);
  }
}

}  // namespace qrm::nic
