// Decides by role first, then by QoS level, then by the static policy.
#include "plugins/cpu/classify.h"

#include <algorithm>
#include <cmath>

#include "api/base/foreign_text.h"
#include "plugins/placement/qos_annotations.h"

namespace qrm::cpu {
namespace {

using placement::NumaSpan;
using placement::QosLevel;
using placement::QosRequest;

Placement InPool(std::string pool) {
  return {.pool = std::move(pool)};
}

std::optional<Placement> ByRole(const CpuPluginConfig& config, const ContainerRequest& request) {
  const std::string& role = request.pod_role;
  for (const auto& [name, pool] : config.pools) {
    if (std::find(pool.roles.begin(), pool.roles.end(), role) != pool.roles.end()) {
      return InPool(name);
    }
  }
  const auto rule = config.roles.find(role);
  if (rule == config.roles.end()) {
    return std::nullopt;
  }
  if (request.type != ContainerType::kMain) {
    return InPool(config.default_pool);
  }
  return Placement{.exclusive = rule->second, .role = role};
}

ExclusiveRule DedicatedRule(const QosRequest& qos) {
  ExclusiveRule rule = {.numa = NumaSpan::kFewest, .whole_cores = qos.full_pcpus_pairing};
  if (qos.distribute_evenly_across_numa) {
    rule.numa = NumaSpan::kEven;
  } else if (qos.numa_binding && !qos.numa_exclusive) {
    rule.numa = NumaSpan::kOne;
  }
  rule.share.anyone = !qos.numa_exclusive;
  return rule;
}

/// The pool that the pod names; else `usual` when it is configured; else `fallback`.
StatusOr<Placement> InQosPool(const CpuPluginConfig& config, const QosRequest& qos,
                              const std::string& usual, const std::string& fallback) {
  if (qos.cpuset_pool.empty()) {
    return InPool(config.pools.contains(usual) ? usual : fallback);
  }
  if (!config.pools.contains(qos.cpuset_pool)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot use pool '{}' of annotation cpu_enhancement: there is no such pool; name "
                  "one of the cpu plugin's pools",
                  Quoted(qos.cpuset_pool));
  }
  return InPool(qos.cpuset_pool);
}

/// Source: Kubernetes 1.36, static policy, guaranteedCPUs.
bool IsForStaticPolicy(const CpuPluginConfig& config, const ContainerRequest& request) {
  const double cpus = request.quantity();
  return config.static_mode && request.type != ContainerType::kEphemeral &&
         request.native_qos_class == "Guaranteed" && cpus >= 1 && std::floor(cpus) == cpus;
}

/// Where its role, QoS level or class leads a container that asks for CPUs.
StatusOr<Placement> ByRules(const CpuPluginConfig& config, const ContainerRequest& request) {
  if (std::optional<Placement> placement = ByRole(config, request)) {
    return *std::move(placement);
  }
  QRM_ASSIGN_OR_RETURN(const QosRequest qos, placement::ParseQosAnnotations(request.annotations));
  switch (qos.level) {
    case QosLevel::kDedicated:
      return request.type == ContainerType::kMain ? Placement{.exclusive = DedicatedRule(qos)}
                                                  : InPool(config.default_pool);
    case QosLevel::kShared:
      return InQosPool(config, qos, "share", config.default_pool);
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
                     .by_static_policy = true};
  }
  return InPool(config.default_pool);
}

}  // namespace

StatusOr<Placement> Classify(const CpuPluginConfig& config, const ContainerRequest& request) {
  QRM_ASSIGN_OR_RETURN(Placement placement, ByRules(config, request));
  if (placement.exclusive && request.quantity() == 0) {
    return InPool(config.default_pool);
  }
  return placement;
}

}  // namespace qrm::cpu
