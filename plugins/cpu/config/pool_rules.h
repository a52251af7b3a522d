// Pools of CPUs as configured: how large they are, where their CPUs are, and who may use them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "api/id_set.h"

namespace qrm::cpu {

/// How the size of a pool follows its containers. Units: CPUs.
struct ElasticSize {
  // In the order of the words in configuration files.
  enum class Per {
    kRequest,
    kLimit,   ///< the limits; without a limit, the request counts
    kAdvice,  ///< what an advisor says; without advice, the requests
  };
  enum class Round { kCpu, kCore, kL3 };

  int min = 0;
  int max = CpuSet::kMaxIds;
  Per per = Per::kRequest;  ///< what the containers ask for
  int ratio_percent = 100;  ///< of that
  Round round = Round::kCpu;
  std::chrono::seconds shrink_after{30};  ///< how long it must need less before it gives up CPUs
  int step = 0;                           ///< the most CPUs that it gives up at a time; 0: all
  bool below_requests = false;            ///< advice may leave it less than its containers request
  bool overcommits = true;                ///< its containers may request more than it can have

  bool operator==(const ElasticSize&) const = default;
};

/// Which idle CPUs a pool also uses; in the order of the words in configuration files.
enum class IdleSpan {
  kNone,
  kNuma,     ///< those of the NUMA nodes on which it has CPUs
  kPackage,  ///< those of the packages
  kAll,
};

/// Which pools may also use a pool's CPUs.
struct LendRule {
  std::vector<std::string> to;  ///< pools
  int keep = 0;                 ///< CPUs that are not lent
  bool keeps_used = false;      ///< nor are those that its containers use

  bool operator==(const LendRule&) const = default;
};

/// Where an elastic pool should have its CPUs.
struct PlaceRule {
  /// In the order of the words in configuration files.
  enum class Numa {
    kAny,     ///< first nodes where the pool has CPUs, and few
    kOne,     ///< one, and others only if `numa_required` allows it
    kFewest,  ///< as kAny
    kEven,    ///< as many on each node as it has room for
  };
  enum class Core { kAny, kPerformance, kEfficient };  ///< the kind, on machines with several
  enum class Threads {
    kAll,
    kOnePerCore,  ///< the pool owns whole cores, and its containers run on one thread of each
    kWholeCores,  ///< the pool owns whole cores
    kSpread,      ///< one thread of each core first; others may have the other threads
  };
  enum class Share { kCore, kL3 };

  Numa numa = Numa::kAny;
  Core core = Core::kAny;
  Threads threads = Threads::kAll;
  bool align_l3 = false;  ///< whole L3 caches as long as there are some
  Share avoided_share = Share::kCore;
  std::vector<std::string> avoid;  ///< pools that it should not share this with if possible
  /// Globs of devices of the machine, or of extended resources whose devices containers have.
  std::vector<std::string> near;
  NumaMask near_nodes;         ///< the nodes of the machine's devices, once known
  bool numa_required = false;  ///< only on its node; else its containers are rejected
  bool core_required = false;  ///< cores of its kind only
  bool near_required = false;  ///< CPUs of near nodes only
  bool keeps_near = false;     ///< other pools take CPUs near its devices last

  bool OwnsWholeCores() const {
    return threads == Threads::kOnePerCore || threads == Threads::kWholeCores;
  }
  /// Whether each instance should be near the devices of its containers. Names of resources have a
  /// slash, unlike names of the machine's devices.
  bool NearResources() const {
    return !near.empty() && near.front().find('/') != std::string::npos;
  }
  bool operator==(const PlaceRule&) const = default;
};

/// Which containers of a pool share CPUs: each group has an instance of the pool, with its size and
/// place, or several. An instance is created for its first container, and removed some time after
/// its last.
struct InstanceRule {
  enum class By {
    kPod,
    kContainer,
    kNamespace,
    kLabel,
    kNode,  ///< the NUMA node on which a container is placed
    kAll,   ///< all containers are one group
  };
  enum class Fill {
    kPacked,    ///< a new instance goes to the first NUMA node with room for it
    kBalanced,  ///< it goes to the node with most room
    kFewest,    ///< of kNode: a container goes to the node with fewest containers
  };
  /// Where a container goes that its group's instance has no room for; in the order of the words in
  /// configuration files.
  enum class WhenFull {
    kOverbook,  ///< there
    kAnother,   ///< to another instance of the group
    kAny,       ///< the same; if no more can be created, to any instance with room
  };

  By by = By::kPod;
  std::string label;  ///< of pods, for kLabel
  int min = 0;        ///< instances that exist without containers
  int max = 0;        ///< the most instances with containers; 0: any number
  Fill fill = Fill::kPacked;
  WhenFull when_full = WhenFull::kOverbook;

  bool operator==(const InstanceRule&) const = default;
};

/// A pool of CPUs that its containers share, as configured; it may be resized later.
struct PoolConfig {
  CpuSet cpus;  ///< of an elastic pool: its minimum, once a machine is known
  std::vector<std::string> roles;
  std::optional<ElasticSize> size;  ///< set: it is elastic
  int priority = 0;                 ///< pools with a higher priority get what they ask for first
  int weight = 1;                   ///< within one priority
  IdleSpan borrow_idle = IdleSpan::kNone;
  LendRule lend;
  PlaceRule place;                        ///< of an elastic pool
  std::optional<InstanceRule> instances;  ///< of an elastic pool; set: it only has their CPUs
  /// The pool by NUMA node of the pods of this pool that ask to be bound to a node; empty: none.
  std::string numa_bound;
  std::string cpu_class;     ///< how its CPUs are tuned; empty: not tuned
  bool idle_weight = false;  ///< its containers run only where no other wants to
};

/// The names of the pools that are not configured: the CPUs that are left, and the reserved CPUs.
inline constexpr char kDefaultPool[] = "default";
inline constexpr char kReservedPool[] = "reserved";

}  // namespace qrm::cpu
