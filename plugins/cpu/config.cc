// Reads and checks the cpu plugin's configuration.
#include "plugins/cpu/config.h"

#include <set>

#include "api/base/section.h"
#include "plugins/config/role_config.h"

namespace qrm::cpu {
namespace {

using config::Section;
using placement::NumaSpan;

StatusOr<ExclusiveRule> ParseRule(const Section& section, NumaSpan fallback) {
  ExclusiveRule rule;
  QRM_ASSIGN_OR_RETURN(rule.numa, config::ParseNumaSpan(section, fallback));
  QRM_ASSIGN_OR_RETURN(rule.whole_cores, section.Flag("whole-cores", false));
  QRM_ASSIGN_OR_RETURN(rule.align_l3, section.Flag("align-l3", false));
  return rule;
}

StatusOr<std::map<std::string, ExclusiveRule>> ParseRoles(const Section& section) {
  std::map<std::string, ExclusiveRule> roles;
  std::map<std::string, placement::ShareRule> shares;
  QRM_ASSIGN_OR_RETURN(const auto children, section.Children("roles"));
  for (const auto& [name, child] : children) {
    QRM_RETURN_IF_ERROR(child.AllowKeys({"numa", "whole-cores", "align-l3", "share-numa-with"}));
    QRM_ASSIGN_OR_RETURN(ExclusiveRule rule, ParseRule(child, NumaSpan::kOne));
    QRM_ASSIGN_OR_RETURN(rule.share, config::ParseShareRule(child));
    shares[name] = rule.share;
    roles[name] = std::move(rule);
  }
  QRM_ASSIGN_OR_RETURN(const Section parent, section.Child("roles"));
  QRM_RETURN_IF_ERROR(config::CheckShareRules(parent, shares));
  return roles;
}

StatusOr<std::map<std::string, PoolConfig>> ParsePools(const Section& section,
                                                       std::set<std::string> taken_roles) {
  std::map<std::string, PoolConfig> pools;
  QRM_ASSIGN_OR_RETURN(const Section parent, section.Child("pools"));
  QRM_ASSIGN_OR_RETURN(const auto children, section.Children("pools"));
  for (const auto& [name, child] : children) {
    if (name == kDefaultPool || name == kReservedPool) {
      return parent.Error(name, "is a pool that always exists", "choose another name");
    }
    QRM_RETURN_IF_ERROR(child.AllowKeys({"cpus", "roles"}));
    PoolConfig pool;
    QRM_ASSIGN_OR_RETURN(pool.cpus, child.Parsed<CpuSet>("cpus", "CPU list", "0-3,8"));
    QRM_ASSIGN_OR_RETURN(pool.roles, child.Words("roles"));
    for (const std::string& role : pool.roles) {
      if (!taken_roles.insert(role).second) {
        return child.Error("roles", fmt::format("has '{}', which is placed elsewhere too", role),
                           "name each role once, under roles or in one pool");
      }
    }
    pools[name] = std::move(pool);
  }
  return pools;
}

/// `static: true`, or a mapping with the rule of such containers.
StatusOr<std::optional<ExclusiveRule>> ParseStatic(const Section& section) {
  ExclusiveRule rule = {.numa = NumaSpan::kAny, .share = {.anyone = true}};
  if (!section.Has("static") || section.IsScalar("static")) {
    QRM_ASSIGN_OR_RETURN(const bool on, section.Flag("static", false));
    return on ? std::optional(rule) : std::nullopt;
  }
  QRM_ASSIGN_OR_RETURN(const Section child, section.Child("static"));
  QRM_RETURN_IF_ERROR(child.AllowKeys({"numa", "whole-cores", "align-l3"}));
  QRM_ASSIGN_OR_RETURN(rule, ParseRule(child, NumaSpan::kAny));
  rule.share.anyone = true;
  return std::optional(rule);
}

}  // namespace

StatusOr<CpuPluginConfig> ParseCpuConfig(const Section& section) {
  QRM_RETURN_IF_ERROR(
      section.AllowKeys({"reserved-cpus", "pools", "default-pool", "roles", "static"}));
  CpuPluginConfig config;
  QRM_ASSIGN_OR_RETURN(config.reserved,
                       section.Parsed<CpuSet>("reserved-cpus", "CPU list", "0-3,8"));
  QRM_ASSIGN_OR_RETURN(config.roles, ParseRoles(section));
  std::set<std::string> roles;
  for (const auto& [name, rule] : config.roles) {
    roles.insert(name);
  }
  QRM_ASSIGN_OR_RETURN(config.pools, ParsePools(section, std::move(roles)));
  QRM_ASSIGN_OR_RETURN(config.static_rule, ParseStatic(section));
  QRM_ASSIGN_OR_RETURN(config.default_pool, section.Text("default-pool", kDefaultPool));
  if (config.default_pool != kDefaultPool && !config.pools.contains(config.default_pool)) {
    return section.Error("default-pool", fmt::format("is '{}', no pool", config.default_pool),
                         "name one of pools, or leave the key out");
  }
  return config;
}

}  // namespace qrm::cpu
