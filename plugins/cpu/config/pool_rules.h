// Pools of CPUs as configured: how large they are, where, for whom, and who else may use them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "api/id_set.h"

namespace qrm::cpu {

/// How a pool follows what its containers ask for. Units: CPUs.
struct ElasticSize {
  // In the order of their words in configuration files.
  enum class Per {
    kRequest,
    kLimit,   ///< without a limit their request counts
    kAdvice,  ///< what an advisor says; without advice their request
  };
  enum class Round { kCpu, kCore, kL3 };

  int min = 0;
  int max = CpuSet::kMaxIds;
  Per per = Per::kRequest;  ///< what they ask for
  int ratio_percent = 100;  ///< of that
  Round round = Round::kCpu;
  std::chrono::seconds shrink_after{30};  ///< it needs less for so long before it gives CPUs up
  int step = 0;                           ///< the most that it gives up at a time; 0: all
  bool below_requests = false;            ///< advice may leave it less than its containers request

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

/// Where an elastic pool's CPUs are to be.
struct PlaceRule {
  /// In the order of their words in configuration files.
  enum class Numa {
    kAny,     ///< those of it first that the pool has, and few
    kOne,     ///< one, and others only where `numa_required` does not forbid it
    kFewest,  ///< as kAny
    kEven,    ///< as many on each as there is room for
  };
  enum class Core { kAny, kPerformance, kEfficient };  ///< the kind, on machines with several
  enum class Threads {
    kAll,
    kOnePerCore,  ///< the pool owns whole cores, and its containers run on one thread of each
    kWholeCores,  ///< the pool owns whole cores
  };
  enum class Share { kCore, kL3 };

  Numa numa = Numa::kAny;
  Core core = Core::kAny;
  Threads threads = Threads::kAll;
  bool align_l3 = false;  ///< whole L3 caches while there are some
  Share avoided_share = Share::kCore;
  std::vector<std::string> avoid;  ///< pools with which it would rather not have that in common
  /// Globs of devices of the machine, or of extended resources that containers have devices of.
  std::vector<std::string> near;
  NumaMask near_nodes;         ///< where those of the machine are, once that is known
  bool numa_required = false;  ///< its node is the only one, else its containers are refused
  bool core_required = false;  ///< cores of its kind only
  bool near_required = false;  ///< CPUs of these nodes only

  bool OwnsWholeCores() const { return threads != Threads::kAll; }
  /// Whether each instance is to be near to its containers' devices. Names of resources have a
  /// slash, unlike those of devices of the machine.
  bool NearResources() const {
    return !near.empty() && near.front().find('/') != std::string::npos;
  }
  bool operator==(const PlaceRule&) const = default;
};

/// Which containers of a pool share CPUs: each group has an instance of the pool, with its size and
/// place. An instance is made for its first container and gone some time after its last.
struct InstanceRule {
  enum class By { kPod, kContainer, kNamespace, kLabel };
  enum class Fill {
    kPacked,    ///< a new instance goes to the first NUMA node that has what it asks for
    kBalanced,  ///< to the one with most room
  };

  By by = By::kPod;
  std::string label;  ///< of pods, for kLabel
  int max = 0;        ///< so many have containers at most; 0: any number
  Fill fill = Fill::kPacked;

  bool operator==(const InstanceRule&) const = default;
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
  PlaceRule place;                        ///< of an elastic pool
  std::optional<InstanceRule> instances;  ///< of an elastic pool; set: it has no CPUs but theirs
  std::string cpu_class;  ///< how its CPUs are tuned; empty: as the machine has them
};

/// The names of the pools that are not configured: what is left, and the reserved CPUs.
inline constexpr char kDefaultPool[] = "default";
inline constexpr char kReservedPool[] = "reserved";

}  // namespace qrm::cpu
