// Reads the memory plugin's configuration.
#include "plugins/memory/config.h"

#include "api/base/section.h"
#include "plugins/config/machine_config.h"
#include "plugins/config/role_config.h"

namespace qrm::memory {

using config::Section;
using placement::NumaSpan;

namespace {

StatusOr<std::map<std::string, BindingRule>> ParseRoles(const Section& section) {
  std::map<std::string, BindingRule> roles;
  std::map<std::string, placement::ShareRule> shares;
  QRM_ASSIGN_OR_RETURN(const auto children, section.Children("roles"));
  for (const auto& [name, child] : children) {
    QRM_RETURN_IF_ERROR(child.AllowKeys({"numa", "share-numa-with"}));
    BindingRule rule;
    QRM_ASSIGN_OR_RETURN(rule.numa, config::ParseNumaSpan(child, NumaSpan::kOne));
    QRM_ASSIGN_OR_RETURN(rule.share, config::ParseShareRule(child));
    shares[name] = rule.share;
    roles[name] = std::move(rule);
  }
  QRM_ASSIGN_OR_RETURN(const Section parent, section.Child("roles"));
  QRM_RETURN_IF_ERROR(config::CheckShareRules(parent, shares));
  return roles;
}

}  // namespace

StatusOr<MemoryPluginConfig> ParseMemoryConfig(const Section& section) {
  QRM_RETURN_IF_ERROR(section.AllowKeys({"reserved-memory", "roles", "static"}));
  MemoryPluginConfig config;
  if (!section.Has("reserved-memory") || section.IsScalar("reserved-memory")) {
    QRM_ASSIGN_OR_RETURN(config.reserved_bytes_per_node, section.Bytes("reserved-memory", 0));
  } else {
    QRM_ASSIGN_OR_RETURN(config.reserved_bytes,
                         config::ParseBytesByNode(section, "reserved-memory"));
  }
  QRM_ASSIGN_OR_RETURN(config.roles, ParseRoles(section));
  QRM_ASSIGN_OR_RETURN(config.bind_guaranteed, section.Flag("static", false));
  return config;
}

}  // namespace qrm::memory
