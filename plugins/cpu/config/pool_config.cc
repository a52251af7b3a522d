// Reads pools of fixed CPUs and elastic pools.
#include "plugins/cpu/config/pool_config.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/base/config_key.h"
#include "api/base/number.h"
#include "api/base/section.h"
#include "api/id_set.h"

namespace qrm::cpu {

using config::Section;

StatusOr<int> ReadPercent(const config::Section& section, std::string_view key, int fallback,
                          int most) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text(key, std::to_string(fallback)));
  const std::string_view digits =
      text.ends_with('%') ? std::string_view(text).substr(0, text.size() - 1) : text;
  const auto percent = ParseNumber<int>(digits);
  if (!percent.has_value() || *percent < 1 || *percent > most) {
    return section.Error(key, fmt::format("is '{}', which is not a percentage", text),
                         fmt::format("write one from 1% to {}%", most));
  }
  return *percent;
}

namespace {

constexpr char kLabel[] = "label:";

/// `avoid: {share: l3, with: [other]}`.
Status ParseAvoid(const Section& place, PlaceRule& rule) {
  if (!place.Has("avoid")) {
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const Section section, place.Child("avoid"));
  QRM_RETURN_IF_ERROR(section.AllowKeys({"share", "with"}));
  QRM_ASSIGN_OR_RETURN(const std::size_t share, section.Choice("share", 0, {"core", "l3"}));
  rule.avoided_share = static_cast<PlaceRule::Share>(share);
  QRM_ASSIGN_OR_RETURN(rule.avoid, section.WordOrWords("with"));
  if (rule.avoid.empty()) {
    return section.Error("with", "names no pool", "name the pools to keep apart from");
  }
  return OkStatus();
}

/// `require: [numa, core, near]`: wishes without which the container is rejected.
Status ParseRequire(const Section& place, PlaceRule& rule) {
  QRM_ASSIGN_OR_RETURN(const std::vector<std::string> required, place.WordOrWords("require"));
  for (const std::string& word : required) {
    const bool numa = word == "numa" && rule.numa == PlaceRule::Numa::kOne;
    const bool core = word == "core" && rule.core != PlaceRule::Core::kAny;
    const bool near = word == "near" && !rule.near.empty();
    if (!numa && !core && !near) {
      return place.Error("require", fmt::format("has '{}', which place does not set", word),
                         "write numa beside numa: one, core beside core: performance or "
                         "efficient, and near beside near");
    }
    (numa ? rule.numa_required : core ? rule.core_required : rule.near_required) = true;
  }
  return OkStatus();
}

/// `near: eth0` or `near: ["nvidia.com/*"]`.
Status ParseNear(const Section& place, PlaceRule& rule) {
  QRM_ASSIGN_OR_RETURN(rule.near, place.WordOrWords("near"));
  for (const std::string& glob : rule.near) {
    if ((glob.find('/') != std::string::npos) != rule.NearResources()) {
      return place.Error(
          "near",
          fmt::format(
              "has '{}' and '{}', but one is a resource and the other a device of the machine",
              rule.near.front(), glob),
          "name devices of one kind");
    }
  }
  return OkStatus();
}

StatusOr<int> ReadCount(const Section& section, std::string_view key, int fallback) {
  QRM_ASSIGN_OR_RETURN(const uint64_t count, section.Number(key, static_cast<uint64_t>(fallback)));
  if (count > CpuSet::kMaxIds) {
    return section.Error(key, fmt::format("is {}, which is more than any machine has", count),
                         "write a number of CPUs");
  }
  return static_cast<int>(count);
}

StatusOr<InstanceRule> ParseBy(const Section& section) {
  QRM_ASSIGN_OR_RETURN(const std::string by, section.Text("by", ""));
  if (by.starts_with(kLabel) && by.size() > sizeof(kLabel) - 1) {
    return InstanceRule{.by = InstanceRule::By::kLabel, .label = by.substr(sizeof(kLabel) - 1)};
  }
  const std::pair<const char*, InstanceRule::By> words[] = {
      {"pod", InstanceRule::By::kPod},
      {"container", InstanceRule::By::kContainer},
      {"namespace", InstanceRule::By::kNamespace},
      {"numa-node", InstanceRule::By::kNode},
      {"all", InstanceRule::By::kAll},
  };
  for (const auto& [word, value] : words) {
    if (by == word) {
      return InstanceRule{.by = value};
    }
  }
  return section.Error("by", fmt::format("is '{}', which does not group containers", by),
                       "write pod, container, namespace, numa-node, all or label:KEY");
}

/// OK when the keys of `section` fit each other and the pool's size.
Status CheckInstances(const Section& section, const InstanceRule& rule,
                      const std::optional<ElasticSize>& size) {
  const bool by_node = rule.by == InstanceRule::By::kNode;
  const bool overbooks = rule.when_full == InstanceRule::WhenFull::kOverbook;
  if (by_node && (rule.min > 0 || !overbooks)) {
    return section.Error("by", "is 'numa-node', with one instance on each node",
                         "remove min and when-full");
  }
  if (!by_node && rule.fill == InstanceRule::Fill::kFewest) {
    return section.Error("fill", "is 'fewest', which is for by: numa-node",
                         "write packed or balanced");
  }
  if (rule.by == InstanceRule::By::kAll && overbooks) {
    return section.Error("by", "is 'all', so that one instance would have all containers",
                         "write when-full: another, or remove instances");
  }
  if (rule.min > 0 &&
      (size.value_or(ElasticSize()).min == 0 || (rule.max > 0 && rule.max < rule.min))) {
    return section.Error("min", fmt::format("is '{}'", rule.min),
                         "write no more than max, and give the pool a size.min");
  }
  return OkStatus();
}

/// The mapping `place`, absent or not. The caller checks that the named pools exist.
StatusOr<PlaceRule> ParsePlace(const Section& pool) {
  PlaceRule rule;
  if (!pool.Has("place")) {
    return rule;
  }
  if (!pool.Has("size")) {
    return pool.Error("place", "is for pools with a size only", "write size instead of cpus");
  }
  QRM_ASSIGN_OR_RETURN(const Section place, pool.Child("place"));
  QRM_RETURN_IF_ERROR(place.AllowKeys(
      {"numa", "core", "near", "keep-near", "threads", "align-l3", "avoid", "require"}));
  QRM_ASSIGN_OR_RETURN(const std::size_t numa,
                       place.Choice("numa", 0, {"any", "one", "fewest", "even"}));
  rule.numa = static_cast<PlaceRule::Numa>(numa);
  QRM_ASSIGN_OR_RETURN(const std::size_t core,
                       place.Choice("core", 0, {"any", "performance", "efficient"}));
  rule.core = static_cast<PlaceRule::Core>(core);
  QRM_ASSIGN_OR_RETURN(
      const std::size_t threads,
      place.Choice("threads", 0, {"all", "one-per-core", "whole-cores", "spread"}));
  rule.threads = static_cast<PlaceRule::Threads>(threads);
  QRM_ASSIGN_OR_RETURN(rule.align_l3, place.Flag("align-l3", false));
  QRM_RETURN_IF_ERROR(ParseNear(place, rule));
  QRM_ASSIGN_OR_RETURN(rule.keeps_near, place.Flag("keep-near", false));
  if (rule.keeps_near && (rule.near.empty() || rule.NearResources())) {
    return place.Error("keep-near", "is 'true', but near names no device of the machine",
                       "name one, or remove keep-near");
  }
  QRM_RETURN_IF_ERROR(ParseAvoid(place, rule));
  QRM_RETURN_IF_ERROR(ParseRequire(place, rule));
  return rule;
}

/// The mapping `instances`; absent without it.
StatusOr<std::optional<InstanceRule>> ParseInstances(const Section& pool,
                                                     const std::optional<ElasticSize>& size) {
  if (!pool.Has("instances")) {
    return std::optional<InstanceRule>();
  }
  if (!pool.Has("size")) {
    return pool.Error("instances", "is for pools with a size only", "write size instead of cpus");
  }
  QRM_ASSIGN_OR_RETURN(const Section section, pool.Child("instances"));
  QRM_RETURN_IF_ERROR(section.AllowKeys({"by", "min", "max", "fill", "when-full"}));
  QRM_ASSIGN_OR_RETURN(InstanceRule rule, ParseBy(section));
  QRM_ASSIGN_OR_RETURN(rule.min, ReadCount(section, "min", 0));
  QRM_ASSIGN_OR_RETURN(const uint64_t most, section.Number("max", 0));
  rule.max = static_cast<int>(std::min<uint64_t>(most, CpuSet::kMaxIds));
  if (section.Has("max") && rule.max == 0) {
    return section.Error("max", "is '0', which admits no container", "write 1 or more");
  }
  QRM_ASSIGN_OR_RETURN(const std::size_t fill,
                       section.Choice("fill", 0, {"packed", "balanced", "fewest"}));
  rule.fill = static_cast<InstanceRule::Fill>(fill);
  QRM_ASSIGN_OR_RETURN(const std::size_t when_full,
                       section.Choice("when-full", 0, {"overbook", "another", "any"}));
  rule.when_full = static_cast<InstanceRule::WhenFull>(when_full);
  QRM_RETURN_IF_ERROR(CheckInstances(section, rule, size));
  return std::optional(std::move(rule));
}

constexpr int kMostRatio = 10000;

StatusOr<std::chrono::seconds> ReadShrinkAfter(const Section& section) {
  QRM_ASSIGN_OR_RETURN(const std::string text, section.Text("shrink-after", "30s"));
  const std::optional<std::chrono::milliseconds> delay = config::ParseDuration(text);
  if (!delay.has_value()) {
    return section.Error("shrink-after", fmt::format("is '{}', which is not a duration", text),
                         "write for example 30s or 5m");
  }
  return std::chrono::duration_cast<std::chrono::seconds>(*delay);
}

StatusOr<ElasticSize> ReadFixedSize(const Section& section) {
  QRM_RETURN_IF_ERROR(section.AllowKeys({"fixed", "overcommit"}));
  ElasticSize size;
  QRM_ASSIGN_OR_RETURN(size.min, ReadCount(section, "fixed", 0));
  if (size.min == 0) {
    return section.Error("fixed", "is '0', which leaves its containers no CPU", "write 1 or more");
  }
  size.max = size.min;
  return size;
}

StatusOr<ElasticSize> ReadSize(const Section& section) {
  if (section.Has("fixed")) {
    return ReadFixedSize(section);
  }
  QRM_RETURN_IF_ERROR(section.AllowKeys({"fixed", "min", "max", "per", "ratio", "round",
                                         "shrink-after", "step", "below-requests", "overcommit"}));
  ElasticSize size;
  QRM_ASSIGN_OR_RETURN(const std::size_t per,
                       section.Choice("per", 0, {"request", "limit", "advice"}));
  size.per = static_cast<ElasticSize::Per>(per);
  QRM_ASSIGN_OR_RETURN(size.min, ReadCount(section, "min", 0));
  QRM_ASSIGN_OR_RETURN(size.max, ReadCount(section, "max", CpuSet::kMaxIds));
  if (size.max == 0 || size.max < size.min) {
    return section.Error("max", fmt::format("is {}, but min is {}", size.max, size.min),
                         "write at least min, and at least 1");
  }
  QRM_ASSIGN_OR_RETURN(size.ratio_percent,
                       ReadPercent(section, "ratio", size.ratio_percent, kMostRatio));
  QRM_ASSIGN_OR_RETURN(const std::size_t round, section.Choice("round", 0, {"cpu", "core", "l3"}));
  size.round = static_cast<ElasticSize::Round>(round);
  QRM_ASSIGN_OR_RETURN(size.shrink_after, ReadShrinkAfter(section));
  QRM_ASSIGN_OR_RETURN(size.step, ReadCount(section, "step", 0));
  QRM_ASSIGN_OR_RETURN(const std::size_t below,
                       section.Choice("below-requests", 0, {"refuse", "allow"}));
  size.below_requests = below == 1;
  return size;
}

/// `size`, `priority` and `weight`.
Status ReadElasticKeys(const Section& section, PoolConfig& pool) {
  constexpr uint64_t kMost = 1000000;  // so that sums of its products with CPUs stay exact
  if (section.Has("size")) {
    QRM_ASSIGN_OR_RETURN(const Section size, section.Child("size"));
    QRM_ASSIGN_OR_RETURN(pool.size, ReadSize(size));
    QRM_ASSIGN_OR_RETURN(const std::size_t overcommit,
                         size.Choice("overcommit", 0, {"allow", "refuse"}));
    pool.size->overcommits = overcommit == 0;
  }
  for (const auto& [key, value] :
       {std::pair("priority", &pool.priority), std::pair("weight", &pool.weight)}) {
    if (section.Has(key) && !pool.size.has_value()) {
      return section.Error(key, "is for pools with a size only", "write size, or remove it");
    }
    QRM_ASSIGN_OR_RETURN(const uint64_t number, section.Number(key, static_cast<uint64_t>(*value)));
    if (number > kMost) {
      return section.Error(key, fmt::format("is {}, which is too large", number),
                           fmt::format("write a number up to {}", kMost));
    }
    *value = static_cast<int>(number);
  }
  if (pool.weight == 0) {
    return section.Error("weight", "is '0', which would give the pool no more than its min",
                         "write 1 or more; max bounds a pool");
  }
  return OkStatus();
}

/// The configured CPUs of a pool; no pool of `earlier` may have them.
StatusOr<CpuSet> ReadCpus(const Section& section,
                          const std::map<std::string, PoolConfig>& earlier) {
  if (section.Has("cpus") && section.Has("size")) {
    return section.Error("cpus", "contradicts size, by which the plugin chooses the CPUs",
                         "keep one of the two");
  }
  QRM_ASSIGN_OR_RETURN(CpuSet cpus, section.Parsed<CpuSet>("cpus", "CPU list", "0-3,8"));
  for (const auto& [other, pool] : earlier) {
    if (const CpuSet both = cpus & pool.cpus; !both.Empty()) {
      return section.Error("cpus",
                           fmt::format("has {}, which pool {} also has", ToString(both), other),
                           "give each CPU to one pool");
    }
  }
  return cpus;
}

/// `borrow: {idle: numa}`.
StatusOr<IdleSpan> ReadBorrow(const Section& pool) {
  QRM_ASSIGN_OR_RETURN(const Section section, pool.Child("borrow"));
  QRM_RETURN_IF_ERROR(section.AllowKeys({"idle"}));
  QRM_ASSIGN_OR_RETURN(const std::size_t span,
                       section.Choice("idle", 0, {"none", "numa", "package", "all"}));
  return static_cast<IdleSpan>(span);
}

/// `lend: {to: [other], keep: 4}`, or `keep: used`; CheckSharing checks that the pools exist.
StatusOr<LendRule> ReadLend(const Section& pool) {
  LendRule lend;
  if (!pool.Has("lend")) {
    return lend;
  }
  QRM_ASSIGN_OR_RETURN(const Section section, pool.Child("lend"));
  QRM_RETURN_IF_ERROR(section.AllowKeys({"to", "keep"}));
  QRM_ASSIGN_OR_RETURN(lend.to, section.WordOrWords("to"));
  if (lend.to.empty()) {
    return section.Error("to", "names no pool", "name the pools that may use these CPUs");
  }
  QRM_ASSIGN_OR_RETURN(const std::string keep, section.Text("keep", "0"));
  lend.keeps_used = keep == "used";
  if (!lend.keeps_used) {
    QRM_ASSIGN_OR_RETURN(lend.keep, ReadCount(section, "keep", 0));
  }
  return lend;
}

/// OK unless containers of a pool without instances could have devices on different nodes.
Status CheckNear(const Section& section, const PoolConfig& pool) {
  if (!pool.place.NearResources() || pool.instances.has_value()) {
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const Section place, section.Child("place"));
  return place.Error(
      "near",
      fmt::format(
          "has '{}', a resource, but containers of the pool may have devices on different nodes",
          pool.place.near.front()),
      "give the pool instances, such as {by: pod}, or name devices of the machine");
}

using NamedSections = std::vector<std::pair<std::string, Section>>;

/// OK when pools lend to existing other pools, and borrow idle CPUs only if there can be some.
Status CheckSharing(const NamedSections& sections, const std::map<std::string, PoolConfig>& pools) {
  for (const auto& [name, section] : sections) {
    const PoolConfig& pool = pools.at(name);
    if (pool.borrow_idle != IdleSpan::kNone && !pools.contains(kDefaultPool)) {
      QRM_ASSIGN_OR_RETURN(const Section borrow, section.Child("borrow"));
      return borrow.Error("idle", "finds no idle CPUs: the default pool has all that are left",
                          "give the pool default a size, too");
    }
    for (const std::string& avoided : pool.place.avoid) {
      if (avoided == name || !pools.contains(avoided)) {
        QRM_ASSIGN_OR_RETURN(const Section place, section.Child("place"));
        QRM_ASSIGN_OR_RETURN(const Section avoid, place.Child("avoid"));
        return avoid.Error("with", fmt::format("has '{}', which is not another pool", avoided),
                           "name other pools");
      }
    }
    const auto bound = pools.find(pool.numa_bound);
    if (!pool.numa_bound.empty() &&
        (bound == pools.end() ||
         bound->second.instances.value_or(InstanceRule()).by != InstanceRule::By::kNode)) {
      return section.Error(
          "numa-bound", fmt::format("is '{}', which is not a pool by NUMA node", pool.numa_bound),
          "name a pool with instances: {by: numa-node}");
    }
    for (const std::string& borrower : pool.lend.to) {
      if (borrower == name || !pools.contains(borrower)) {
        QRM_ASSIGN_OR_RETURN(const Section lend, section.Child("lend"));
        return lend.Error("to", fmt::format("has '{}', which is not another pool", borrower),
                          "name other pools");
      }
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::map<std::string, PoolConfig>> ParsePools(const Section& section,
                                                       std::set<std::string> taken_roles) {
  std::map<std::string, PoolConfig> pools;
  QRM_ASSIGN_OR_RETURN(const Section parent, section.Child("pools"));
  QRM_ASSIGN_OR_RETURN(const NamedSections children, section.Children("pools"));
  for (const auto& [name, child] : children) {
    if (name == kReservedPool || (name == kDefaultPool && !child.Has("size"))) {
      return parent.Error(
          name, "is a pool that always exists",
          name == kReservedPool ? "choose another name" : "choose another name, or give it a size");
    }
    if (name.find('/') != std::string::npos) {
      return parent.Error(name, "has a slash, which only names of instances may have",
                          "choose another name");
    }
    QRM_RETURN_IF_ERROR(
        child.AllowKeys({"cpus", "roles", "size", "priority", "weight", "borrow", "lend", "place",
                         "instances", "numa-bound", "class", "idle-weight"}));
    PoolConfig pool;
    QRM_ASSIGN_OR_RETURN(pool.cpus, ReadCpus(child, pools));
    QRM_RETURN_IF_ERROR(ReadElasticKeys(child, pool));
    QRM_ASSIGN_OR_RETURN(pool.borrow_idle, ReadBorrow(child));
    QRM_ASSIGN_OR_RETURN(pool.lend, ReadLend(child));
    QRM_ASSIGN_OR_RETURN(pool.place, ParsePlace(child));
    QRM_ASSIGN_OR_RETURN(pool.instances, ParseInstances(child, pool.size));
    QRM_RETURN_IF_ERROR(CheckNear(child, pool));
    QRM_ASSIGN_OR_RETURN(pool.numa_bound, child.Text("numa-bound", ""));
    QRM_ASSIGN_OR_RETURN(pool.cpu_class, child.Text("class", ""));
    QRM_ASSIGN_OR_RETURN(pool.idle_weight, child.Flag("idle-weight", false));
    QRM_ASSIGN_OR_RETURN(pool.roles, child.Words("roles"));
    for (const std::string& role : pool.roles) {
      if (!taken_roles.insert(role).second) {
        return child.Error("roles", fmt::format("has '{}', which is also placed elsewhere", role),
                           "name each role once, under roles or in one pool");
      }
    }
    pools[name] = std::move(pool);
  }
  QRM_RETURN_IF_ERROR(CheckSharing(children, pools));
  return pools;
}

}  // namespace qrm::cpu
