// Which rule or pool a container belongs to, by role, QoS level or native QoS class.
#pragma once

#include <optional>
#include <string>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/cpu/config/config.h"

namespace qrm::cpu {

/// Where a container goes: exclusive CPUs by a rule, or a pool.
struct Placement {
  std::optional<ExclusiveRule> exclusive;
  bool by_static_policy = false;  ///< the policy chooses the CPUs, not the rule
  std::string plus;  ///< the pool (or its instance) used beside exclusive CPUs; empty: none
  std::string role;  ///< for its neighbours; empty for containers that are placed without a role
  std::string pool;  ///< or instance, when not exclusive; empty: its CPUs are not changed
  std::string by;    ///< the configuration that decided this, for people
};

/// Where a container goes: by the first rule that fits it, else by its role, else by its QoS level,
/// else by the static policy, else to the default pool. A grant says which containers of a pod get
/// exclusive CPUs. In pods placed by role or QoS level, only MAIN containers get exclusive CPUs (by
/// the static policy also SIDECAR and INIT). The pod's other containers, and containers that
/// request no CPU, use the default pool, or the pool in the grant's `plus`. So do containers of
/// such a grant that request less than one CPU. Errors: kInvalidArgument for unreadable
/// annotations, an unknown pool, or a pod without the label that selects the pool's instance.
StatusOr<Placement> Classify(const CpuPluginConfig& config, const ContainerRequest& request);

}  // namespace qrm::cpu
