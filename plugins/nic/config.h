// The nic plugin's configuration: its resource name, the NICs, and how near roles require them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/placement/select.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::nic {

/// A NIC as the configuration declares it.
struct NicConfig {
  std::string interface;
  std::optional<int> node;
  std::string ipv4;
  std::string ipv6;
  std::string netns;  ///< path of its network namespace; empty for the default one
  /// Units: Mbit/s. 0: not accounted for; absent: the NIC's speed, if the request is a bandwidth.
  std::optional<uint64_t> egress_mbps;
  std::optional<uint64_t> ingress_mbps;
};

/// How near a container's NIC must be; in the order of the words in configuration files.
enum class NicAffinity {
  kPreferred,  ///< on the container's NUMA nodes where possible
  kRequired,   ///< on the container's NUMA nodes, or the container is rejected
};

/// Which NICs are followed while the plugin runs.
enum class NicFollow {
  kNone,  ///< read once, and treated as healthy
  kHost,  ///< those of the network namespace that the plugin runs in
  kAll,   ///< also those of other namespaces
};

/// How a container learns about its NIC. Source of the defaults of the first three: the QoS
/// Resource Manager proposal, example 3.
struct NicNames {
  std::string ipv4_env = "AFFINITY_NIC_ADDR_IPV4";
  std::string ipv6_env = "AFFINITY_NIC_ADDR_IPV6";
  std::string netns_annotation = "kubernetes.io/host-netns-path";
  std::string problem_annotation = "nic.qrm.io/problem";  ///< its problem after the allocation
};

/// The resource name of the QoS Resource Manager proposal.
inline constexpr char kDefaultResource[] = "NIC";

struct NicPluginConfig {
  std::string resource = kDefaultResource;
  /// The requested amount is a bandwidth in Mbit/s, taken from the NIC in both directions; else
  /// NICs are shared without limit.
  bool request_is_bandwidth = false;
  std::vector<NicConfig> nics;  ///< empty: the machine's own
  NicFollow follow = NicFollow::kHost;
  NicNames names;
  std::vector<placement::RoleRule> rules;  ///< give containers another role
  std::map<std::string, NicAffinity> roles;
  NicAffinity affinity = NicAffinity::kPreferred;  ///< of roles that are not in `roles`
};

/// The namespaces that the plugin reads besides its own.
std::vector<std::string> FollowedNamespaces(const NicPluginConfig& config);

/// Reads the keys of the nic plugin. Errors: kInvalidArgument with file, line, key, value and the
/// allowed values.
StatusOr<NicPluginConfig> ParseNicConfig(const config::Section& section);

}  // namespace qrm::nic
