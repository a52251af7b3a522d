// What the kernel says of network interfaces: values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace qrm::nic {

/// One interface. Source: rtnetlink(7), SIOCETHTOOL, sysfs.
struct InterfaceFacts {
  bool up = false;          ///< somebody wants it to work
  bool has_link = false;    ///< and it does, as far as the kernel can tell
  std::optional<int> node;  ///< NUMA node; absent when firmware does not say
  uint64_t speed_mbps = 0;  ///< Mbit/s; 0: not known, as of many virtual devices
  /// In the kernel's order, without link-local ones, which are of no use without the interface.
  std::vector<std::string> ipv4;
  std::vector<std::string> ipv6;

  bool operator==(const InterfaceFacts&) const = default;
};

/// One network namespace.
struct NamespaceFacts {
  bool exists = true;
  std::map<std::string, InterfaceFacts> interfaces;  ///< by name

  bool operator==(const NamespaceFacts&) const = default;
};

/// By the path of the namespace; "" is this program's own. Of one that is missing nothing is known.
using NicFacts = std::map<std::string, NamespaceFacts>;

}  // namespace qrm::nic
