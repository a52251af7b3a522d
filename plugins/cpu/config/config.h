// The cpu plugin's configuration: reserved CPUs, pools, and the roles that get CPUs of their own.
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
#include "plugins/rules/exclusive_nodes.h"
#include "plugins/rules/sharing.h"
#include "plugins/tuning/cpu_class.h"
#include "topology/cpu_assignment.h"

namespace qrm::config {
class Section;
}  // namespace qrm::config

namespace qrm::cpu {

/// Whether a container gets isolated CPUs; in the order of their words in configuration files.
enum class IsolatedWish {
  kNever,
  kPrefer,  ///< those first, and others where they are too few
  kRequire,
};

/// How a container gets CPUs of its own.
struct ExclusiveRule {
  rules::NumaSpan numa = rules::NumaSpan::kOne;
  IsolatedWish isolated = IsolatedWish::kNever;
  bool whole_cores = false;  ///< all threads of each core, or none
  bool align_l3 = false;     ///< within one L3 cache where possible
  rules::ShareRule share;
  std::string cpu_class;  ///< how its CPUs are tuned; empty: as the machine has them

  bool operator==(const ExclusiveRule&) const = default;
};

/// How the containers that a rule leads here get CPUs of their own.
struct GrantConfig {
  ExclusiveRule rule;
  /// Which of a pod's containers get them; the others use a pool.
  enum class Containers { kMain, kAll, kNamed } containers = Containers::kMain;
  std::vector<std::string> named;
  /// The pool that they use beside their own CPUs, for the fraction of what they request, and that
  /// the pod's other containers use; empty: their own CPUs only, and the default pool.
  std::string plus;

  bool operator==(const GrantConfig&) const = default;
};

/// Kubelet's static policy for the Guaranteed containers that ask for whole CPUs.
/// Source: Kubernetes 1.36, static policy options.
struct StaticConfig {
  CpuAssignmentOptions options;
  bool strict_reservation = false;  ///< the default pool is without the reserved CPUs
  int reserved_count = 0;           ///< CPUs to reserve as kubelet does when none are listed
};

/// What becomes of a container where it is led to has no room; in the order of their words in
/// configuration files.
enum class OnFull {
  kRefuse,
  kShareDefault,  ///< it shares the default pool
};

struct CpuPluginConfig {
  CpuSet reserved;
  int reserved_count = 0;  ///< CPUs to reserve when none are listed
  /// CPUs that are in no pool, and a container's own only where its rule says so. While they are
  /// those that the kernel isolates, they are set once a machine is known.
  CpuSet isolated;
  bool isolated_by_kernel = true;
  std::map<std::string, PoolConfig> pools;
  std::map<std::string, ExclusiveRule> roles;
  std::map<std::string, GrantConfig> grants;
  /// The first that fits a container decides, before roles, annotations and the static policy.
  std::vector<Rule> rules;
  /// How much of its NUMA nodes a container must request to have them exclusively by annotation.
  uint64_t exclusive_node_percent = rules::kUsualExclusiveNodePercent;
  /// NUMA nodes by the names of devices, instead of what the machine tells of them.
  std::optional<std::map<std::string, NumaMask>> devices;
  /// The pool of containers that no rule places; kDefaultPool for what is left.
  std::string default_pool = kDefaultPool;
  OnFull on_full = OnFull::kRefuse;
  AdvisorConfig advisor;
  tuning::CpuClasses classes;
  // Of CPUs that nobody owns, and of those that are reserved; empty: none.
  std::string idle_class;
  std::string reserved_class;
  /// Set: containers that nothing else places are placed by kubelet's static policy, and the
  /// reserved CPUs belong to the default pool unless it says otherwise.
  std::optional<StaticConfig> static_mode;
};

/// Reads the keys of the cpu plugin. Errors: kInvalidArgument with file, line, key, value and what
/// is allowed.
StatusOr<CpuPluginConfig> ParseCpuConfig(const config::Section& section);

}  // namespace qrm::cpu
