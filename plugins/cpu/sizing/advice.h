// Advice for pools: what an advisor wants, and how much of it is possible. Values only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/base/status.h"
#include "plugins/cpu/config/advisor_config.h"
#include "plugins/cpu/sizing/pool_size.h"

namespace qrm::cpu {

using SteadyPoint = std::chrono::steady_clock::time_point;

/// The names of the built-in advisor, and of the advice remembered from all advisors.
inline constexpr char kByUse[] = "use";
inline constexpr char kBeforeRestart[] = "before the restart";

/// Which of two advisors leads a pool that both want: the one of the higher rank; of equal ranks,
/// the one that leads it already.
enum class AdvisorRank : uint8_t {
  kRemembered,  ///< what was advised before a restart
  kBuiltIn,
  kConnected,  ///< its leases are bounded by the configuration
};

/// How many CPUs a pool, or an instance of one, should have.
struct Advice {
  std::string pool;  ///< or the instance's name
  int cpus = 0;
  std::string reason;  ///< from the advisor, for people

  bool operator==(const Advice&) const = default;
};

/// All that one advisor wants; it replaces the advisor's previous call.
struct AdviceCall {
  std::string advisor;  ///< its name
  AdvisorRank rank = AdvisorRank::kConnected;
  uint64_t generation = 0;             ///< of the node that the advisor saw
  std::chrono::milliseconds lease{0};  ///< how long it should be in force; 0: as long as possible
  std::vector<Advice> entries;
};

/// The pools of a node as an advisor sees them.
struct AdvisedNode {
  uint64_t generation = 0;           ///< changes with pools and CPUs, not with containers
  PoolAsks asks;                     ///< of elastic pools and their instances, without advice
  PoolSizes sizes;                   ///< the current sizes
  std::map<std::string, int> steps;  ///< the most by which a plan changes them; none: any
  int capacity = 0;                  ///< CPUs that the pools share

  bool operator==(const AdvisedNode&) const = default;
};

/// Why a pool does not get its advised size; in the order of the numbers on the wire.
enum class AdviceClip : uint8_t {
  kNothing,
  kMin,       ///< it has at least its minimum
  kMax,       ///< it has at most its maximum
  kStep,      ///< it is changing in steps
  kCapacity,  ///< there are not enough CPUs beside those of other pools
  kUnknown,   ///< there is no such pool, or it may not be advised
  kStale,     ///< the advisor saw another generation of the node; the whole call is ignored
  kRequests,  ///< it has at least what its containers request
};

struct AdviceResult {
  std::string pool;
  int applied = 0;  ///< CPUs that the next plan gives it
  AdviceClip clipped = AdviceClip::kNothing;

  bool operator==(const AdviceResult&) const = default;
};

/// The result of each entry of `call`, in its order, on `node`. `in_force` is the advice of all
/// advisors together, including this call.
std::vector<AdviceResult> ClipAdvice(const AdvisorConfig& config, const AdvisedNode& node,
                                     const AdviceCall& call, const PoolSizes& in_force);

/// `asks`, with the pools of `advised` asking for their advised sizes.
PoolAsks WithAdvice(PoolAsks asks, const PoolSizes& advised);

/// The advised sizes of the next plan: a step from `now` (or from the current sizes without earlier
/// advice) towards `wanted`. If `wanted` is at least the containers' request, the request is
/// reached at once. Pools that are not in `wanted` follow their containers.
PoolSizes NextAdvice(const AdvisedNode& node, const PoolSizes& now, const PoolSizes& wanted);

/// Which advisor leads which pools, and until when.
/// Threads: one. Cost: O(advisors x entries).
class AdviceBook {
 public:
  explicit AdviceBook(AdvisorConfig config) : config_(std::move(config)) {}

  /// Takes `call` at `now`, unless it is stale. Errors: kInvalidArgument for a call without a name,
  /// with two entries for one pool, or with too many entries. kResourceExhausted when another
  /// advisor leads one of its pools, or there are too many advisors.
  StatusOr<std::vector<AdviceResult>> Take(const AdviceCall& call, const AdvisedNode& node,
                                           SteadyPoint now);

  /// CPUs by pool that are advised at `now`; expired advice is forgotten.
  PoolSizes InForce(SteadyPoint now);

 private:
  struct Said {
    AdvisorRank rank;
    PoolSizes cpus;  // of pools that may be advised
    SteadyPoint leads_until;
    SteadyPoint counts_until;  // the end of the lease and of the hold after it
  };
  Status CheckCall(const AdviceCall& call, SteadyPoint now) const;
  /// Another advisor of the rank of `call` that leads `pool`; empty if there is none.
  std::string RivalFor(const std::string& pool, const AdviceCall& call, SteadyPoint now) const;
  /// Whether an advisor of a higher rank than `rank` has advised `pool`, also while its advice is
  /// held after its lease.
  bool GivesWay(const std::string& pool, AdvisorRank rank) const;

  const AdvisorConfig config_;
  std::map<std::string, Said> said_;  // by advisor
};

}  // namespace qrm::cpu
