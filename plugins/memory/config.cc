// Reads the memory plugin's configuration.
#include "plugins/memory/config.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/base/section.h"
#include "plugins/config/machine_config.h"
#include "plugins/config/select_config.h"

namespace qrm::memory {

using config::Section;
using rules::NumaSpan;

namespace {

/// `kinds: [hbm, dram]`, each at most once.
StatusOr<std::vector<MemoryKind>> ParseKinds(const Section& section) {
  constexpr char kKey[] = "kinds";
  std::vector<MemoryKind> kinds;
  QRM_ASSIGN_OR_RETURN(const std::vector<std::string> words, section.WordOrWords(kKey));
  if (section.Has(kKey) && words.empty()) {
    return section.Error(kKey, "is empty", "name kinds of memory, or remove the key for any kind");
  }
  for (const std::string& word : words) {
    QRM_ASSIGN_OR_RETURN(const MemoryKind kind, config::ReadMemoryKind(section, kKey, word));
    if (std::ranges::find(kinds, kind) != kinds.end()) {
      return section.Error(kKey, fmt::format("has {} twice", word), "name each kind once");
    }
    kinds.push_back(kind);
  }
  return kinds;
}

StatusOr<std::map<std::string, BindingRule>> ParseRoles(const Section& section) {
  std::map<std::string, BindingRule> roles;
  std::map<std::string, rules::ShareRule> shares;
  QRM_ASSIGN_OR_RETURN(const auto children, section.Children("roles"));
  for (const auto& [name, child] : children) {
    QRM_RETURN_IF_ERROR(child.AllowKeys({"numa", "share-numa-with", "kinds", "moves"}));
    BindingRule rule;
    QRM_ASSIGN_OR_RETURN(rule.numa, config::ParseNumaSpan(child, NumaSpan::kOne));
    QRM_ASSIGN_OR_RETURN(rule.share, config::ParseShareRule(child));
    QRM_ASSIGN_OR_RETURN(rule.kinds, ParseKinds(child));
    QRM_ASSIGN_OR_RETURN(rule.moves, child.Flag("moves", false));
    shares[name] = rule.share;
    roles[name] = std::move(rule);
  }
  QRM_ASSIGN_OR_RETURN(const Section parent, section.Child("roles"));
  QRM_RETURN_IF_ERROR(config::CheckShareRules(parent, shares));
  return roles;
}

/// `{0: 1Gi}`, or `{0: {memory: 1Gi, hugepages-2Mi: 64Mi}}`.
StatusOr<std::map<int, MemoryBytes>> ParseReservation(const Section& section) {
  std::map<int, MemoryBytes> reserved;
  QRM_ASSIGN_OR_RETURN(const Section nodes, section.Child("reserved-memory"));
  for (const std::string& name : nodes.Keys()) {
    QRM_ASSIGN_OR_RETURN(const int node,
                         config::ReadNode(nodes, name, "write lines such as `0: 1Gi`"));
    if (nodes.IsScalar(name)) {
      QRM_ASSIGN_OR_RETURN(reserved[node][kOrdinaryMemory], nodes.Bytes(name, 0));
      continue;
    }
    QRM_ASSIGN_OR_RETURN(const Section types, nodes.Child(name));
    for (const std::string& type : types.Keys()) {
      if (type != kOrdinaryMemory && !IsHugepages(type)) {
        return types.Error(type, "is not a type of memory", "write memory or hugepages-2Mi");
      }
      QRM_ASSIGN_OR_RETURN(reserved[node][type], types.Bytes(type, 0));
    }
  }
  return reserved;
}

}  // namespace

StatusOr<MemoryPluginConfig> ParseMemoryConfig(const Section& section) {
  QRM_RETURN_IF_ERROR(section.AllowKeys(
      {"reserved-memory", "roles", "rules", "static", "exclusive-node-percent", "bind-shared"}));
  MemoryPluginConfig config;
  if (!section.Has("reserved-memory") || section.IsScalar("reserved-memory")) {
    QRM_ASSIGN_OR_RETURN(config.reserved_bytes_per_node, section.Bytes("reserved-memory", 0));
  } else {
    QRM_ASSIGN_OR_RETURN(config.reserved_bytes, ParseReservation(section));
  }
  QRM_ASSIGN_OR_RETURN(config.roles, ParseRoles(section));
  QRM_ASSIGN_OR_RETURN(config.rules, config::ParseRoleRules(section));
  QRM_ASSIGN_OR_RETURN(config.exclusive_node_percent, config::ParseExclusiveNodePercent(section));
  QRM_ASSIGN_OR_RETURN(config.by_static_policy, section.Flag("static", false));
  QRM_ASSIGN_OR_RETURN(config.binds_shared, section.Flag("bind-shared", false));
  return config;
}

}  // namespace qrm::memory
