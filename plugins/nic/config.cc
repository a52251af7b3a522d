// Reads the nic plugin's configuration.
#include "plugins/nic/config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <utility>

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>

#include "api/base/section.h"
#include "api/id_set.h"
#include "api/resource.h"
#include "plugins/config/select_config.h"

namespace qrm::nic {
namespace {

using config::Section;

StatusOr<std::string> ParseAddress(const Section& section, const char* key, int family) {
  QRM_ASSIGN_OR_RETURN(std::string text, section.Text(key, ""));
  std::array<unsigned char, sizeof(in6_addr)> bytes;
  if (!text.empty() && inet_pton(family, text.c_str(), bytes.data()) != 1) {
    return section.Error(
        key, fmt::format("is '{}', which is not an address", text),
        family == AF_INET ? "write for example 192.0.2.7" : "write for example 2001:db8::7");
  }
  return text;
}

StatusOr<std::optional<int>> ParseNode(const Section& section) {
  if (!section.Has("numa-node")) {
    return std::optional<int>();
  }
  QRM_ASSIGN_OR_RETURN(const uint64_t node, section.Number("numa-node", 0));
  if (node >= NumaMask::kMaxIds) {
    return section.Error("numa-node", fmt::format("is {}, which is not a NUMA node", node),
                         "write the number of a NUMA node");
  }
  return std::optional(static_cast<int>(node));
}

StatusOr<NicConfig> ParseNic(const Section& section) {
  QRM_RETURN_IF_ERROR(section.AllowKeys({"interface", "numa-node", "ipv4", "ipv6", "netns",
                                         "speed-mbps", "egress-mbps", "ingress-mbps"}));
  NicConfig nic;
  QRM_ASSIGN_OR_RETURN(nic.interface, section.Text("interface", ""));
  if (nic.interface.empty()) {
    return section.Error("interface", "is missing", "name the network interface");
  }
  QRM_ASSIGN_OR_RETURN(nic.node, ParseNode(section));
  QRM_ASSIGN_OR_RETURN(nic.ipv4, ParseAddress(section, "ipv4", AF_INET));
  QRM_ASSIGN_OR_RETURN(nic.ipv6, ParseAddress(section, "ipv6", AF_INET6));
  QRM_ASSIGN_OR_RETURN(nic.netns, section.Text("netns", ""));
  if (!nic.netns.empty() && nic.netns.front() != '/') {
    return section.Error("netns", fmt::format("is '{}', which is not an absolute path", nic.netns),
                         "write for example /var/run/netns/ns1");
  }
  for (const auto& [key, place] : {std::pair("egress-mbps", &NicConfig::egress_mbps),
                                   std::pair("ingress-mbps", &NicConfig::ingress_mbps)}) {
    const char* const written = section.Has(key) ? key : "speed-mbps";
    if (section.Has(written)) {
      QRM_ASSIGN_OR_RETURN(nic.*place, section.Number(written, 0));
    }
  }
  return nic;
}

StatusOr<std::vector<NicConfig>> ParseNics(const Section& section) {
  std::vector<NicConfig> nics;
  std::set<std::pair<std::string, std::string>> seen;
  QRM_ASSIGN_OR_RETURN(const std::vector<Section> items, section.Items("nics"));
  for (const Section& item : items) {
    QRM_ASSIGN_OR_RETURN(NicConfig nic, ParseNic(item));
    if (!seen.emplace(nic.netns, nic.interface).second) {
      return item.Error("interface", fmt::format("is '{}', which is listed twice", nic.interface),
                        "remove one, or set different netns");
    }
    nics.push_back(std::move(nic));
  }
  return nics;
}

/// Source: POSIX, Base Definitions, "Name".
bool IsVariableName(const std::string& text) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::ranges::all_of(text, is_word);
}

bool IsAnnotationKey(const std::string& text) {
  return CheckResourceName(text).ok();  // the same form
}

struct NameKey {
  const char* key;
  std::string NicNames::* place;
  bool (*is_good)(const std::string&);
  const char* example;
};
constexpr NameKey kNameKeys[] = {
    {"ipv4-variable", &NicNames::ipv4_env, IsVariableName, "AFFINITY_NIC_ADDR_IPV4"},
    {"ipv6-variable", &NicNames::ipv6_env, IsVariableName, "AFFINITY_NIC_ADDR_IPV6"},
    {"netns-annotation", &NicNames::netns_annotation, IsAnnotationKey,
     "kubernetes.io/host-netns-path"},
    {"problem-annotation", &NicNames::problem_annotation, IsAnnotationKey, "nic.qrm.io/problem"},
};

StatusOr<NicNames> ParseNames(const Section& section) {
  QRM_RETURN_IF_ERROR(section.AllowKeys(
      {"ipv4-variable", "ipv6-variable", "netns-annotation", "problem-annotation"}));
  NicNames names;
  std::set<std::string> taken;
  for (const NameKey& name : kNameKeys) {
    std::string& place = names.*name.place;
    QRM_ASSIGN_OR_RETURN(place, section.Text(name.key, place));
    if (!name.is_good(place)) {
      return section.Error(name.key, fmt::format("is '{}', which is not a valid name", place),
                           fmt::format("write for example {}", name.example));
    }
    if (!taken.insert(place).second) {
      return section.Error(name.key, fmt::format("is '{}', like another key of names", place),
                           "use different names");
    }
  }
  return names;
}

StatusOr<NicAffinity> ParseAffinity(const Section& section, NicAffinity fallback) {
  QRM_ASSIGN_OR_RETURN(
      const std::size_t affinity,
      section.Choice("numa", static_cast<std::size_t>(fallback), {"preferred", "required"}));
  return static_cast<NicAffinity>(affinity);
}

}  // namespace

std::vector<std::string> FollowedNamespaces(const NicPluginConfig& config) {
  std::set<std::string> paths;
  for (const NicConfig& nic : config.nics) {
    if (config.follow == NicFollow::kAll && !nic.netns.empty()) {
      paths.insert(nic.netns);
    }
  }
  return {paths.begin(), paths.end()};
}

StatusOr<NicPluginConfig> ParseNicConfig(const Section& section) {
  QRM_RETURN_IF_ERROR(section.AllowKeys(
      {"resource", "request", "numa", "nics", "roles", "rules", "follow", "names"}));
  NicPluginConfig config;
  QRM_ASSIGN_OR_RETURN(config.resource, section.Text("resource", config.resource));
  if (!CheckResourceName(config.resource).ok()) {
    return section.Error("resource",
                         fmt::format("is '{}', which is not a resource name", config.resource),
                         "write a qualified name such as NIC or example.com/nic");
  }
  QRM_ASSIGN_OR_RETURN(const std::size_t request, section.Choice("request", 0, {"share", "mbps"}));
  config.request_is_bandwidth = request == 1;
  QRM_ASSIGN_OR_RETURN(config.affinity, ParseAffinity(section, config.affinity));
  QRM_ASSIGN_OR_RETURN(config.nics, ParseNics(section));
  QRM_ASSIGN_OR_RETURN(
      const std::size_t follow,
      section.Choice("follow", static_cast<std::size_t>(config.follow), {"none", "host", "all"}));
  config.follow = static_cast<NicFollow>(follow);
  QRM_ASSIGN_OR_RETURN(const Section names, section.Child("names"));
  QRM_ASSIGN_OR_RETURN(config.names, ParseNames(names));
  QRM_ASSIGN_OR_RETURN(const auto roles, section.Children("roles"));
  for (const auto& [name, role] : roles) {
    QRM_RETURN_IF_ERROR(role.AllowKeys({"numa"}));
    QRM_ASSIGN_OR_RETURN(config.roles[name], ParseAffinity(role, NicAffinity::kRequired));
  }
  QRM_ASSIGN_OR_RETURN(config.rules, config::ParseRoleRules(section));
  return config;
}

}  // namespace qrm::nic
