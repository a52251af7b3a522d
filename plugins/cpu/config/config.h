// The cpu plugin's configuration: reserved CPUs, pools, and the roles that get exclusive CPUs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "plugins/cpu/config/advisor_config.h"
#include "plugins/cpu/config/pool_rules.h"
#include "plugins/cpu/config/rules.h"
#include "plugins/kernel/tuning_profile.h"
#include "plugins/rules/sharing.h"
#include "topology/cpu_layout.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::cpu {

/// Whether a container gets isolated CPUs; in the order of their words in configuration files.
enum class IsolatedWish {
  kNever,
  kPrefer,  ///< isolated CPUs first, and others if there are too few
  kRequire,
};

/// How a container gets exclusive CPUs.
struct ExclusiveRule {
  rules::NumaSpan numa = rules::NumaSpan::kOne;
  IsolatedWish isolated = IsolatedWish::kNever;
  bool whole_cores = false;  ///< all threads of each core, or none
  bool whole_nodes = false;  ///< all CPUs of its NUMA nodes, however few it requests
  bool align_l3 = false;     ///< within one L3 cache where possible
  rules::ShareRule share;
  std::string cpu_class;  ///< how its CPUs are tuned; empty: not tuned

  bool operator==(const ExclusiveRule&) const = default;
};

/// How the containers that a rule leads to this grant get exclusive CPUs.
struct GrantConfig {
  ExclusiveRule rule;
  /// Which containers of a pod get exclusive CPUs; the others use a pool.
  enum class Containers { kMain, kAll, kNamed } containers = Containers::kMain;
  std::vector<std::string> named;
  /// The pool for the fraction of a request beside exclusive CPUs, and for the pod's other
  /// containers. Empty: exclusive CPUs only, and the default pool for the others.
  std::string plus;

  bool operator==(const GrantConfig&) const = default;
};

/// Kubelet's static policy for Guaranteed containers that request whole CPUs.
/// Source: Kubernetes 1.36, static policy options.
struct StaticConfig {
  CpuAssignmentOptions options;
  bool strict_reservation = false;  ///< the default pool does not include the reserved CPUs
  int reserved_count = 0;           ///< CPUs to reserve as kubelet does, if none are listed
};

/// What happens to a container whose target has no room; in the order of the words in configuration
/// files.
enum class OnFull {
  kRefuse,
  kShareDefault,  ///< it shares the default pool
};

struct CpuPluginConfig {
  CpuSet reserved;
  int reserved_count = 0;  ///< CPUs to reserve if none are listed
  /// CPUs that are in no pool, and exclusive only if the container's rule says so. If the kernel
  /// decides which CPUs are isolated, they are set once a machine is known.
  CpuSet isolated;
  bool isolated_by_kernel = true;
  std::map<std::string, PoolConfig> pools;
  std::map<std::string, GrantConfig> grants;  ///< a role is a grant with a rule for its pods
  /// The first that fits a container decides, before annotations and the static policy.
  std::vector<Rule> rules;
  /// How much of its NUMA nodes a container must request to have them exclusively by annotation.
  uint64_t exclusive_node_percent = rules::kUsualExclusiveNodePercent;
  /// NUMA nodes by name of device; replaces what the machine reports.
  std::optional<std::map<std::string, NumaMask>> devices;
  /// The pool of containers that no rule places; kDefaultPool for the CPUs that are left.
  std::string default_pool = kDefaultPool;
  OnFull on_full = OnFull::kRefuse;
  AdvisorConfig advisor;
  kernel::TuningProfiles classes;
  // Classes of CPUs without an owner, and of reserved CPUs; empty: none.
  std::string idle_class;
  std::string reserved_class;
  /// Set: kubelet's static policy places containers that nothing else places, and the reserved CPUs
  /// belong to the default pool unless the policy says otherwise.
  std::optional<StaticConfig> static_mode;
};

/// Reads the keys of the cpu plugin. Errors: kInvalidArgument with file, line, key, value and the
/// allowed values.
StatusOr<CpuPluginConfig> ParseCpuConfig(const config::Section& section);

}  // namespace qrm::cpu
