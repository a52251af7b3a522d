// Writes rtnetlink's messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

namespace qrm::test {

template <typename T>
std::string BytesOf(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

/// With the padding to what follows.
inline std::string Padded(std::string bytes) {
  bytes.resize(NLMSG_ALIGN(bytes.size()));
  return bytes;
}

inline std::string Attribute(uint16_t type, std::string_view value) {
  const rtattr header = {.rta_len = static_cast<uint16_t>(sizeof(rtattr) + value.size()),
                         .rta_type = type};
  return Padded(BytesOf(header) + std::string(value));
}

inline std::string Message(uint16_t type, uint16_t flags, const std::string& payload) {
  nlmsghdr header = {};
  header.nlmsg_len = static_cast<uint32_t>(sizeof header + payload.size());
  header.nlmsg_type = type;
  header.nlmsg_flags = flags;
  return Padded(BytesOf(header) + payload);
}

}  // namespace qrm::test
