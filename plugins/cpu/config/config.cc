// Reads and checks the cpu plugin's configuration.
#include "plugins/cpu/config/config.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "api/base/section.h"
#include "plugins/config/select_config.h"
#include "plugins/cpu/config/pool_config.h"

namespace qrm::cpu {
namespace {

using config::Section;
using rules::NumaSpan;

/// A number of CPUs that a machine may have. Errors: kInvalidArgument.
StatusOr<int> ParseCount(const Section& section, std::string_view key) {
  QRM_ASSIGN_OR_RETURN(const uint64_t count, section.Number(key, 0));
  if (count > CpuSet::kMaxIds) {
    return section.Error(key, fmt::format("is {}, which is more than any machine has", count),
                         "write how many CPUs the system needs");
  }
  return static_cast<int>(count);
}

/// `reserved-cpus: 0-3`, or `{count: 4}`.
Status ParseReserved(const Section& section, CpuPluginConfig& config) {
  if (!section.Has("reserved-cpus") || section.IsScalar("reserved-cpus")) {
    QRM_ASSIGN_OR_RETURN(config.reserved,
                         section.Parsed<CpuSet>("reserved-cpus", "CPU list", "0-3,8"));
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const Section child, section.Child("reserved-cpus"));
  QRM_RETURN_IF_ERROR(child.AllowKeys({"count"}));
  QRM_ASSIGN_OR_RETURN(config.reserved_count, ParseCount(child, "count"));
  return OkStatus();
}

/// `isolated-cpus: kernel`, `none`, or a list. With kubelet's static policy none by default, as
/// kubelet does not know isolated CPUs.
Status ParseIsolated(const Section& section, CpuPluginConfig& config) {
  QRM_ASSIGN_OR_RETURN(const std::string text,
                       section.Text("isolated-cpus", config.static_mode ? "none" : "kernel"));
  config.isolated_by_kernel = text == "kernel";
  if (!config.isolated_by_kernel && text != "none") {
    QRM_ASSIGN_OR_RETURN(config.isolated, section.Parsed<CpuSet>(
                                              "isolated-cpus", "CPU list, kernel or none", "8-15"));
  }
  if (config.isolated.Intersects(config.reserved)) {
    return section.Error(
        "isolated-cpus",
        fmt::format("has {} of reserved-cpus", ToString(config.isolated & config.reserved)),
        "name each CPU in one of them");
  }
  return OkStatus();
}

StatusOr<ExclusiveRule> ParseRule(const Section& section) {
  ExclusiveRule rule;
  QRM_ASSIGN_OR_RETURN(rule.numa, config::ParseNumaSpan(section, NumaSpan::kOne));
  QRM_ASSIGN_OR_RETURN(rule.whole_cores, section.Flag("whole-cores", false));
  QRM_ASSIGN_OR_RETURN(rule.align_l3, section.Flag("align-l3", false));
  QRM_ASSIGN_OR_RETURN(const std::size_t isolated,
                       section.Choice("isolated", 0, {"never", "prefer", "require"}));
  rule.isolated = static_cast<IsolatedWish>(isolated);
  QRM_ASSIGN_OR_RETURN(rule.share, config::ParseShareRule(section));
  QRM_ASSIGN_OR_RETURN(rule.cpu_class, section.Text("class", ""));
  return rule;
}

/// `containers: main`, `all`, or a list of names.
Status ParseGrantContainers(const Section& section, GrantConfig& grant) {
  if (!section.Has("containers") || section.IsScalar("containers")) {
    QRM_ASSIGN_OR_RETURN(const std::size_t which, section.Choice("containers", 0, {"main", "all"}));
    grant.containers = which == 0 ? GrantConfig::Containers::kMain : GrantConfig::Containers::kAll;
    return OkStatus();
  }
  grant.containers = GrantConfig::Containers::kNamed;
  QRM_ASSIGN_OR_RETURN(grant.named, section.Words("containers"));
  return OkStatus();
}

/// `grants`, and `roles`: grants for the main containers of pods with the role.
StatusOr<std::map<std::string, GrantConfig>> ParseGrants(const Section& section) {
  std::map<std::string, GrantConfig> grants;
  QRM_ASSIGN_OR_RETURN(const auto roles, section.Children("roles"));
  for (const auto& [name, child] : roles) {
    QRM_RETURN_IF_ERROR(child.AllowKeys(
        {"numa", "whole-cores", "align-l3", "isolated", "share-numa-with", "class"}));
    QRM_ASSIGN_OR_RETURN(grants[name].rule, ParseRule(child));
  }
  QRM_ASSIGN_OR_RETURN(const Section parent, section.Child("grants"));
  QRM_ASSIGN_OR_RETURN(const auto children, section.Children("grants"));
  for (const auto& [name, child] : children) {
    if (grants.contains(name)) {
      return parent.Error(name, "is the name of a role, too", "choose another name");
    }
    QRM_RETURN_IF_ERROR(child.AllowKeys({"numa", "whole-cores", "align-l3", "isolated",
                                         "share-numa-with", "containers", "plus", "class"}));
    QRM_ASSIGN_OR_RETURN(grants[name].rule, ParseRule(child));
    QRM_RETURN_IF_ERROR(ParseGrantContainers(child, grants[name]));
    QRM_ASSIGN_OR_RETURN(grants[name].plus, child.Text("plus", ""));
  }
  return grants;
}

/// OK when roles and grants that share NUMA nodes agree.
Status CheckSharing(const Section& section, const CpuPluginConfig& config) {
  std::map<std::string, rules::ShareRule> shares;
  for (const auto& [name, grant] : config.grants) {
    shares[name] = grant.rule.share;
  }
  QRM_ASSIGN_OR_RETURN(const Section parent,
                       section.Child(section.Has("grants") ? "grants" : "roles"));
  return config::CheckShareRules(parent, shares);
}

/// OK when the target of each rule exists.
Status CheckTargets(const Section& section, const CpuPluginConfig& config) {
  QRM_ASSIGN_OR_RETURN(const std::vector<Section> items, section.Items("rules"));
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Rule& rule = config.rules[i];
    const bool is_pool =
        config.pools.contains(rule.name) || rule.name == kDefaultPool ||
        (rule.name == kReservedPool && (config.reserved_count > 0 || !config.reserved.Empty()));
    if (rule.target == Rule::Target::kPool && !is_pool) {
      return items[i].Error("pool", fmt::format("is '{}', which is not a pool", rule.name),
                            "name one of pools, or add it there");
    }
    if (rule.target == Rule::Target::kGrant && !config.grants.contains(rule.name)) {
      return items[i].Error("grant", fmt::format("is '{}', which is not a grant", rule.name),
                            "name one of grants, or add it there");
    }
  }
  return OkStatus();
}

/// Pods with a role of `pools.NAME.roles` or of `roles`, behind the other rules.
void AddRoleRules(const std::vector<std::string>& roles, CpuPluginConfig& config) {
  const auto add = [&](const std::string& role, Rule::Target target, const std::string& name,
                       std::string place) {
    config.rules.push_back({.select = {.role = rules::TextSet({role})},
                            .target = target,
                            .name = name,
                            .place = std::move(place)});
  };
  for (const auto& [name, pool] : config.pools) {
    for (const std::string& role : pool.roles) {
      add(role, Rule::Target::kPool, name, fmt::format("pools.{}.roles", name));
    }
  }
  for (const std::string& role : roles) {
    add(role, Rule::Target::kGrant, role, fmt::format("roles.{}", role));
  }
}

/// OK when each grant's `plus` is a pool.
Status CheckPlus(const Section& section, const CpuPluginConfig& config) {
  QRM_ASSIGN_OR_RETURN(const auto children, section.Children("grants"));
  for (const auto& [name, child] : children) {
    const std::string& pool = config.grants.at(name).plus;
    if (!pool.empty() && pool != kDefaultPool && !config.pools.contains(pool)) {
      return child.Error("plus", fmt::format("is '{}', which is not a pool", pool),
                         "name one of pools, or add it there");
    }
  }
  return OkStatus();
}

/// OK when `key` of `section` is absent or names a class.
Status CheckClass(const Section& section, const std::string& key, const CpuPluginConfig& config) {
  QRM_ASSIGN_OR_RETURN(const std::string name, section.Text(key, ""));
  return name.empty() || config.classes.contains(name)
             ? OkStatus()
             : section.Error(key, fmt::format("is '{}', which is not a class", name),
                             "name one of classes, or add it there");
}

/// OK when each class that the configuration names exists.
Status CheckClasses(const Section& section, const CpuPluginConfig& config) {
  for (const char* const owners : {"pools", "roles", "grants"}) {
    QRM_ASSIGN_OR_RETURN(const auto children, section.Children(owners));
    for (const auto& [name, child] : children) {
      QRM_RETURN_IF_ERROR(CheckClass(child, "class", config));
    }
  }
  QRM_RETURN_IF_ERROR(CheckClass(section, "idle-class", config));
  QRM_RETURN_IF_ERROR(CheckClass(section, "reserved-class", config));
  if (!config.idle_class.empty() && !config.pools.contains(kDefaultPool)) {
    return section.Error("idle-class", "finds no idle CPUs: the default pool has all that are left",
                         "give the pool default a size, too");
  }
  return OkStatus();
}

/// `static: true`, or a mapping with options of kubelet's static policy, by kubelet's names.
StatusOr<std::optional<StaticConfig>> ParseStatic(const Section& section) {
  StaticConfig config;
  if (!section.Has("static") || section.IsScalar("static")) {
    QRM_ASSIGN_OR_RETURN(const bool on, section.Flag("static", false));
    return on ? std::optional(config) : std::nullopt;
  }
  QRM_ASSIGN_OR_RETURN(const Section child, section.Child("static"));
  QRM_RETURN_IF_ERROR(
      child.AllowKeys({"full-pcpus-only", "distribute-cpus-across-numa",
                       "distribute-cpus-across-cores", "prefer-align-cpus-by-uncorecache",
                       "align-by-socket", "strict-cpu-reservation", "reserved-cpu-count"}));
  const std::pair<const char*, bool*> flags[] = {
      {"full-pcpus-only", &config.options.full_physical_cpus_only},
      {"distribute-cpus-across-numa", &config.options.distribute_across_numa},
      {"distribute-cpus-across-cores", &config.options.distribute_across_cores},
      {"prefer-align-cpus-by-uncorecache", &config.options.prefer_align_by_l3},
      {"align-by-socket", &config.options.align_by_socket},
      {"strict-cpu-reservation", &config.strict_reservation},
  };
  for (const auto& [name, flag] : flags) {
    QRM_ASSIGN_OR_RETURN(*flag, child.Flag(name, false));
  }
  if (const Status together = ValidateCpuAssignmentOptions(config.options); !together.ok()) {
    return section.Error("static", "does not work: " + MessageOf(together), "drop one of the two");
  }
  QRM_ASSIGN_OR_RETURN(config.reserved_count, ParseCount(child, "reserved-cpu-count"));
  return std::optional(config);
}

/// OK when the CPUs that pools use are measured if a pool keeps them.
Status CheckUsed(const Section& section, const CpuPluginConfig& config) {
  QRM_ASSIGN_OR_RETURN(const auto pools, section.Children("pools"));
  for (const auto& [name, child] : pools) {
    const PoolConfig& pool = config.pools.at(name);
    if (pool.lend.keeps_used && !(config.advisor.use.has_value() && pool.size.has_value())) {
      QRM_ASSIGN_OR_RETURN(const Section lend, child.Child("lend"));
      return lend.Error("keep", "is 'used', but nothing measures what the pool uses",
                        "set advisor.use and the pool's size, or write a number");
    }
  }
  return OkStatus();
}

/// OK when a list of reserved CPUs and a number of them agree.
Status CheckReservedCount(const Section& section, const CpuPluginConfig& config) {
  const int count = config.static_mode ? config.static_mode->reserved_count : 0;
  const int listed = std::max(config.reserved.Count(), config.reserved_count);
  if (count == 0 || listed == 0 || listed == count) {
    return OkStatus();
  }
  return section.Error(
      "reserved-cpus",
      fmt::format("has {} CPUs, but static.reserved-cpu-count is {}", listed, count),
      "remove one of the two, or list as many CPUs");
}

std::vector<std::string> PoolsByAdvice(const CpuPluginConfig& config) {
  std::vector<std::string> names;
  for (const auto& [name, pool] : config.pools) {
    if (pool.size.value_or(ElasticSize()).per == ElasticSize::Per::kAdvice) {
      names.push_back(name);
    }
  }
  return names;
}

/// OK when the pools that wait for advice may be advised, and all pools that may be advised have a
/// size.
Status CheckAdvised(const Section& section, const CpuPluginConfig& config) {
  QRM_ASSIGN_OR_RETURN(const auto pools, section.Children("pools"));
  for (const auto& [name, child] : pools) {
    if (config.pools.at(name).size.value_or(ElasticSize()).per == ElasticSize::Per::kAdvice &&
        !config.advisor.Advises(name)) {
      QRM_ASSIGN_OR_RETURN(const Section size, child.Child("size"));
      return size.Error("per", "is 'advice', but no advisor may advise the pool",
                        "add an advisor with a socket, and the pool to advisor.pools");
    }
  }
  if (!section.Has("advisor")) {
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const Section advisor, section.Child("advisor"));
  for (const std::string& name : config.advisor.pools) {
    const auto pool = config.pools.find(name);
    if (pool == config.pools.end() || !pool->second.size.has_value()) {
      return advisor.Error("pools", fmt::format("has '{}', which is not a pool with a size", name),
                           "name pools that have a size, or give it a size in pools");
    }
  }
  if (config.advisor.pools.empty()) {
    return advisor.Error("pools", "is empty, so that no pool is advised",
                         "name pools that have a size");
  }
  return OkStatus();
}

/// `devices: {eth0: 1}`
StatusOr<std::optional<std::map<std::string, NumaMask>>> ParseDevices(const Section& section) {
  std::optional<std::map<std::string, NumaMask>> devices;
  if (section.Has("devices")) {
    QRM_ASSIGN_OR_RETURN(const Section child, section.Child("devices"));
    devices.emplace();
    for (const std::string& name : child.Keys()) {
      QRM_ASSIGN_OR_RETURN((*devices)[name],
                           child.Parsed<NumaMask>(name, "list of NUMA nodes", "0-1"));
    }
  }
  return devices;
}

/// OK when the default pool always exists.
Status CheckDefaultPool(const Section& section, const CpuPluginConfig& config) {
  const auto pool = config.pools.find(config.default_pool);
  if (pool == config.pools.end()) {
    return config.default_pool == kDefaultPool
               ? OkStatus()
               : section.Error("default-pool",
                               fmt::format("is '{}', which is not a pool", config.default_pool),
                               "name one of pools, or remove the key");
  }
  if (pool->second.instances.has_value()) {
    QRM_ASSIGN_OR_RETURN(const Section pools, section.Child("pools"));
    return pools.Error(config.default_pool, "has instances, but must be a single pool",
                       "remove its instances, or set default-pool to another pool");
  }
  return OkStatus();
}

}  // namespace

StatusOr<CpuPluginConfig> ParseCpuConfig(const Section& section) {
  QRM_RETURN_IF_ERROR(
      section.AllowKeys({"reserved-cpus", "pools", "default-pool", "roles", "grants", "rules",
                         "static", "exclusive-node-percent", "isolated-cpus", "on-full", "classes",
                         "idle-class", "reserved-class", "advisor", "devices"}));
  CpuPluginConfig config;
  QRM_RETURN_IF_ERROR(ParseReserved(section, config));
  QRM_ASSIGN_OR_RETURN(config.grants, ParseGrants(section));
  QRM_RETURN_IF_ERROR(CheckSharing(section, config));
  QRM_ASSIGN_OR_RETURN(const Section roles, section.Child("roles"));
  const std::vector<std::string> names = roles.Keys();
  QRM_ASSIGN_OR_RETURN(config.pools, ParsePools(section, {names.begin(), names.end()}));
  QRM_ASSIGN_OR_RETURN(config.exclusive_node_percent, config::ParseExclusiveNodePercent(section));
  QRM_ASSIGN_OR_RETURN(config.static_mode, ParseStatic(section));
  QRM_RETURN_IF_ERROR(CheckReservedCount(section, config));
  QRM_RETURN_IF_ERROR(ParseIsolated(section, config));
  QRM_ASSIGN_OR_RETURN(config.default_pool, section.Text("default-pool", kDefaultPool));
  QRM_RETURN_IF_ERROR(CheckDefaultPool(section, config));
  QRM_ASSIGN_OR_RETURN(const std::size_t on_full,
                       section.Choice("on-full", 0, {"refuse", "default-pool"}));
  config.on_full = static_cast<OnFull>(on_full);
  QRM_ASSIGN_OR_RETURN(config.rules, ParseRules(section));
  QRM_RETURN_IF_ERROR(CheckTargets(section, config));
  AddRoleRules(names, config);
  QRM_RETURN_IF_ERROR(CheckPlus(section, config));
  QRM_ASSIGN_OR_RETURN(config.classes, kernel::ParseTuningProfiles(section));
  QRM_ASSIGN_OR_RETURN(config.idle_class, section.Text("idle-class", ""));
  QRM_ASSIGN_OR_RETURN(config.reserved_class, section.Text("reserved-class", ""));
  QRM_RETURN_IF_ERROR(CheckClasses(section, config));
  QRM_ASSIGN_OR_RETURN(config.advisor, ParseAdvisor(section, PoolsByAdvice(config)));
  QRM_RETURN_IF_ERROR(CheckAdvised(section, config));
  QRM_RETURN_IF_ERROR(CheckUsed(section, config));
  QRM_ASSIGN_OR_RETURN(config.devices, ParseDevices(section));
  return config;
}

}  // namespace qrm::cpu
