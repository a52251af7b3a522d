// The kernel's state of network interfaces as values, and what reports its changes to the nic
// plugin.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace qrm::nic {

/// One interface. Source: rtnetlink(7), SIOCETHTOOL, sysfs.
struct InterfaceFacts {
  bool up = false;          ///< set up by the administrator
  bool has_link = false;    ///< and works, as far as the kernel knows
  std::optional<int> node;  ///< NUMA node; absent when firmware does not say
  uint64_t speed_mbps = 0;  ///< Mbit/s; 0: not known, as for many virtual devices
  /// In the kernel's order, without link-local addresses, which are useless without the interface.
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

/// By path of the namespace; "" is the program's own. Nothing is known of a missing namespace.
using NicFacts = std::map<std::string, NamespaceFacts>;

/// Reports changes from Start until its destruction.
class FactsWatch {
 public:
  virtual ~FactsWatch() = default;

  /// Calls `on_change` with all facts whenever they changed since the last call; from one thread.
  /// Called once.
  virtual void Start(std::function<void(const NicFacts&)> on_change) = 0;
};

}  // namespace qrm::nic
