// Decides by rules first, then by QoS level, and by the static policy.
#include "plugins/cpu/config/classify.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "plugins/cpu/config/instances.h"
#include "plugins/rules/qos_annotations.h"

namespace qrm::cpu {
namespace {

using rules::NumaSpan;
using rules::QosLevel;
using rules::QosRequest;

constexpr char kQosLevel[] = "annotation qos_level";

Placement InPool(std::string pool, std::string by) {
  return {.pool = std::move(pool), .by = std::move(by)};
}

/// In `pool`, or the default pool if it is empty, because `why` excludes the container from the
/// exclusive CPUs of `by`.
Placement Beside(const CpuPluginConfig& config, const std::string& pool, std::string_view by,
                 std::string_view why) {
  return InPool(pool.empty() ? config.default_pool : pool, fmt::format("{}, {}", by, why));
}

bool Covers(const GrantConfig& grant, const ContainerRequest& request) {
  switch (grant.containers) {
    case GrantConfig::Containers::kAll:
      return true;
    case GrantConfig::Containers::kNamed:
      return std::find(grant.named.begin(), grant.named.end(), request.key.container) !=
             grant.named.end();
    case GrantConfig::Containers::kMain:
      break;
  }
  return request.type == ContainerType::kMain;
}

Placement ByGrant(const CpuPluginConfig& config, const std::string& name, const GrantConfig& grant,
                  const std::string& by, const ContainerRequest& request) {
  if (!Covers(grant, request)) {
    return Beside(config, grant.plus, by, "whose exclusive CPUs are for other containers");
  }
  return {.exclusive = grant.rule, .plus = grant.plus, .role = name, .by = by};
}

Placement Follow(const CpuPluginConfig& config, const Rule& rule, const ContainerRequest& request) {
  switch (rule.target) {
    case Rule::Target::kGrant:
      return ByGrant(config, rule.name, config.grants.at(rule.name), rule.place, request);
    case Rule::Target::kPool:
      return InPool(rule.name, rule.place);
    case Rule::Target::kAlone:
      break;
  }
  return InPool("", rule.place);
}

ExclusiveRule DedicatedRule(const QosRequest& qos) {
  ExclusiveRule rule = {.numa = NumaSpan::kFewest,
                        .whole_cores = qos.full_pcpus_pairing,
                        .whole_nodes = qos.numa_exclusive};
  if (qos.distribute_evenly_across_numa) {
    rule.numa = NumaSpan::kEven;
  } else if (qos.numa_binding && !qos.numa_exclusive) {
    rule.numa = NumaSpan::kOne;
  }
  rule.share.anyone = !qos.numa_exclusive;
  return rule;
}

/// The pool that the pod names; else `usual` if configured; else `fallback`.
StatusOr<Placement> InQosPool(const CpuPluginConfig& config, const QosRequest& qos,
                              const std::string& usual, const std::string& fallback) {
  if (qos.cpuset_pool.empty()) {
    return InPool(config.pools.contains(usual) ? usual : fallback, kQosLevel);
  }
  if (!config.pools.contains(qos.cpuset_pool)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot use pool '{}' of annotation cpu_enhancement: there is no such pool; name "
                  "one of the cpu plugin's pools",
                  Quoted(qos.cpuset_pool));
  }
  return InPool(qos.cpuset_pool, "annotation cpu_enhancement");
}

/// `placement` of a pod of shared_cores, in the pool by NUMA node if it asks to be bound to a node.
StatusOr<Placement> Bound(const CpuPluginConfig& config, const QosRequest& qos,
                          StatusOr<Placement> placement) {
  if (!qos.numa_binding || !placement.ok()) {
    return placement;
  }
  const auto pool = config.pools.find(placement->pool);
  return pool == config.pools.end() || pool->second.numa_bound.empty()
             ? placement
             : InPool(pool->second.numa_bound, rules::kByBinding);
}

/// Source: Kubernetes 1.36, static policy, guaranteedCPUs.
bool IsForStaticPolicy(const CpuPluginConfig& config, const ContainerRequest& request) {
  const double cpus = request.quantity();
  return config.static_mode && request.type != ContainerType::kEphemeral &&
         request.native_qos_class == "Guaranteed" && cpus >= 1 && std::floor(cpus) == cpus;
}

/// Where a rule, QoS level or class puts a container that requests CPUs.
StatusOr<Placement> ByRules(const CpuPluginConfig& config, const ContainerRequest& request) {
  const auto rule = std::find_if(config.rules.begin(), config.rules.end(),
                                 [&](const Rule& r) { return Matches(r.select, request); });
  if (rule != config.rules.end()) {
    return Follow(config, *rule, request);
  }
  QRM_ASSIGN_OR_RETURN(const QosRequest qos, rules::ParseQosAnnotations(request.annotations));
  switch (qos.level) {
    case QosLevel::kDedicated:
      return request.type == ContainerType::kMain
                 ? Placement{.exclusive = DedicatedRule(qos), .by = kQosLevel}
                 : Beside(config, "", kQosLevel, "whose exclusive CPUs are for other containers");
    case QosLevel::kShared:
      return Bound(config, qos, InQosPool(config, qos, "share", config.default_pool));
    case QosLevel::kReclaimed:
      return InQosPool(config, qos, "reclaim", config.default_pool);
    case QosLevel::kSystem:
      return InQosPool(config, qos, "system",
                       config.reserved.Empty() ? config.default_pool : kReservedPool);
    case QosLevel::kNone:
      break;
  }
  if (IsForStaticPolicy(config, request)) {
    return Placement{.exclusive = ExclusiveRule{.numa = NumaSpan::kAny, .share = {.anyone = true}},
                     .by_static_policy = true,
                     .by = "static"};
  }
  return InPool(config.default_pool, "default-pool");
}

}  // namespace

StatusOr<Placement> Classify(const CpuPluginConfig& config, const ContainerRequest& request) {
  QRM_ASSIGN_OR_RETURN(Placement placement, ByRules(config, request));
  if (placement.exclusive && request.quantity() == 0) {
    placement = Beside(config, placement.plus, placement.by, "but the container requests no CPU");
  } else if (!placement.plus.empty() && request.quantity() < 1) {
    placement =
        Beside(config, placement.plus, placement.by, "but the container requests less than a CPU");
  }
  QRM_ASSIGN_OR_RETURN(placement.pool, PoolFor(config, placement.pool, request));
  QRM_ASSIGN_OR_RETURN(placement.plus, PoolFor(config, placement.plus, request));
  return placement;
}

}  // namespace qrm::cpu
