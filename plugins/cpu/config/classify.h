// Which rule or pool a container belongs to, by role, QoS level or native QoS class.
#pragma once

#include <optional>
#include <string>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/cpu/config/config.h"

namespace qrm::cpu {

/// A container's place: CPUs of its own by a rule, or a pool.
struct Placement {
  std::optional<ExclusiveRule> exclusive;
  bool by_static_policy = false;  ///< the policy chooses the CPUs, not the rule
  std::string plus;               ///< the pool (or instance of one) that it uses beside CPUs of its
                                  ///< own; empty: none
  std::string role;               ///< as its neighbours see it; empty for those placed without one
  std::string pool;               ///< or instance, when not exclusive; empty: its CPUs are not
                                  ///< touched
  std::string by;                 ///< what in the configuration says so, for people
};

/// The place of a container by the first rule that fits it, else by its role, else by its QoS
/// level, else by the static policy, else the default pool. A grant says which containers of a pod
/// get CPUs of their own; of the pods that roles and QoS levels place, only MAIN containers get
/// CPUs of their own (by the static policy SIDECAR and INIT ones too). The others of such a pod,
/// and containers that ask for no CPU, use the default pool; with a grant's `plus` that pool, and
/// so do those that ask for less than one. Errors: kInvalidArgument for
/// unreadable annotations, a pool that does not exist, or a pod without the label by which its pool
/// has instances.
StatusOr<Placement> Classify(const CpuPluginConfig& config, const ContainerRequest& request);

}  // namespace qrm::cpu
