// The cpu plugin's configuration: reserved CPUs, pools, and the roles that get CPUs of their own.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "plugins/cpu/rules.h"
#include "plugins/placement/exclusive_nodes.h"
#include "plugins/placement/sharing.h"
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
  placement::NumaSpan numa = placement::NumaSpan::kOne;
  IsolatedWish isolated = IsolatedWish::kNever;
  bool whole_cores = false;  ///< all threads of each core, or none
  bool align_l3 = false;     ///< within one L3 cache where possible
  placement::ShareRule share;

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

/// How a pool follows what its containers ask for. Units: CPUs.
struct ElasticSize {
  enum class Round { kCpu, kCore, kL3 };  ///< in the order of their words in configuration files

  int min = 0;
  int max = CpuSet::kMaxIds;
  int ratio_percent = 100;  ///< of what they ask for
  Round round = Round::kCpu;
  std::chrono::seconds shrink_after{30};  ///< it needs less for so long before it gives CPUs up
  int step = 0;                           ///< the most that it gives up at a time; 0: all

  bool operator==(const ElasticSize&) const = default;
};

/// Which idle CPUs a pool uses beside its own; in the order of their words in configuration files.
enum class IdleSpan {
  kNone,
  kNuma,     ///< those of the NUMA nodes on which it has CPUs
  kPackage,  ///< those of the packages
  kAll,
};

/// Who else may use a pool's CPUs.
struct LendRule {
  std::vector<std::string> to;  ///< pools
  int keep = 0;                 ///< so many CPUs stay the pool's alone

  bool operator==(const LendRule&) const = default;
};

/// A pool of CPUs that its containers share, as configured; it may be resized later.
struct PoolConfig {
  CpuSet cpus;  ///< of an elastic pool: those of its minimum, once a machine is known
  std::vector<std::string> roles;
  std::optional<ElasticSize> size;  ///< set: it is elastic
  int priority = 0;                 ///< the higher, the earlier it gets what it asks for
  int weight = 1;                   ///< within one priority
  IdleSpan borrow_idle = IdleSpan::kNone;
  LendRule lend;
};

/// The names of the pools that are not configured: what is left, and the reserved CPUs.
inline constexpr char kDefaultPool[] = "default";
inline constexpr char kReservedPool[] = "reserved";

/// Kubelet's static policy for the Guaranteed containers that ask for whole CPUs.
/// Source: Kubernetes 1.36, static policy options.
struct StaticConfig {
  CpuAssignmentOptions options;
  bool strict_reservation = false;  ///< the default pool is without the reserved CPUs
  int reserved_count = 0;           ///< CPUs to reserve as kubelet does when none are listed
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
  uint64_t exclusive_node_percent = placement::kUsualExclusiveNodePercent;
  /// The pool of containers that no rule places; kDefaultPool for what is left.
  std::string default_pool = kDefaultPool;
  /// Set: containers that nothing else places are placed by kubelet's static policy, and the
  /// reserved CPUs belong to the default pool unless it says otherwise.
  std::optional<StaticConfig> static_mode;
};

/// Reads the keys of the cpu plugin. Errors: kInvalidArgument with file, line, key, value and what
/// is allowed.
StatusOr<CpuPluginConfig> ParseCpuConfig(const config::Section& section);

}  // namespace qrm::cpu
