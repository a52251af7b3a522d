// Advice for pools: what an advisor wants, and what of it can be had. Values only.
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

/// The names of the advisor that is built in, and of what is remembered of all advisors.
inline constexpr char kByUse[] = "use";
inline constexpr char kBeforeRestart[] = "before the restart";

/// Which of two advisors has a pool that both want: the one of the higher rank, and of equal ones
/// who leads it already.
enum class AdvisorRank : uint8_t {
  kRemembered,  ///< what was said before a restart
  kBuiltIn,
  kConnected,  ///< whose leases the configuration bounds
};

/// How many CPUs a pool, or an instance of one, should have.
struct Advice {
  std::string pool;  ///< or the instance's name
  int cpus = 0;
  std::string reason;  ///< the advisor's, for people

  bool operator==(const Advice&) const = default;
};

/// All that one advisor wants; it replaces what that advisor said before.
struct AdviceCall {
  std::string advisor;  ///< its name
  AdvisorRank rank = AdvisorRank::kConnected;
  uint64_t generation = 0;             ///< of the node as it has seen it
  std::chrono::milliseconds lease{0};  ///< as long as it wants to be heeded; 0: as long as it may
  std::vector<Advice> entries;
};

/// The pools of a node as an advisor sees them.
struct AdvisedNode {
  uint64_t generation = 0;  ///< of what advice can go wrong by: pools and CPUs, not containers
  PoolAsks asks;            ///< of elastic pools and their instances, without advice
  PoolSizes sizes;          ///< as they are
  std::map<std::string, int> steps;  ///< the most by which a plan changes them; none: any
  int capacity = 0;                  ///< CPUs that they share

  bool operator==(const AdvisedNode&) const = default;
};

/// Why a pool does not get what is advised; in the order of their numbers on the wire.
enum class AdviceClip : uint8_t {
  kNothing,
  kMin,       ///< it has at least its minimum
  kMax,       ///< and at most its maximum
  kStep,      ///< it is on its way
  kCapacity,  ///< there are not enough CPUs beside those of others
  kUnknown,   ///< there is no such pool, or it may not be advised
  kStale,     ///< the node has changed since the advisor looked; nothing of the call counts
  kRequests,  ///< it has at least what its containers request
};

struct AdviceResult {
  std::string pool;
  int applied = 0;  ///< CPUs that the next plan gives it
  AdviceClip clipped = AdviceClip::kNothing;

  bool operator==(const AdviceResult&) const = default;
};

/// What becomes of each entry of `call`, in its order, on `node`, where `in_force` is what all
/// advisors want together, this call included.
std::vector<AdviceResult> ClipAdvice(const AdvisorConfig& config, const AdvisedNode& node,
                                     const AdviceCall& call, const PoolSizes& in_force);

/// `asks`, with the pools of `advised` asking for that instead of what their containers do.
PoolAsks WithAdvice(PoolAsks asks, const PoolSizes& advised);

/// What pools ask for one plan later: from `now`, or from their sizes where nothing was advised
/// before, a step closer to `wanted`, or at once what their containers request where that is wanted
/// at least. Pools that are not in `wanted` follow their containers.
PoolSizes NextAdvice(const AdvisedNode& node, const PoolSizes& now, const PoolSizes& wanted);

/// Who advises which pools, and until when.
/// Threads: one. Cost: O(advisors x entries).
class AdviceBook {
 public:
  explicit AdviceBook(AdvisorConfig config) : config_(std::move(config)) {}

  /// Takes `call` at `now`, unless it is stale. Errors: kInvalidArgument for a call without a name,
  /// with two entries for one pool or with too many; kResourceExhausted when another advisor leads
  /// one of its pools, or too many advise.
  StatusOr<std::vector<AdviceResult>> Take(const AdviceCall& call, const AdvisedNode& node,
                                           SteadyPoint now);

  /// CPUs by pool that are advised at `now`; what has expired is forgotten.
  PoolSizes InForce(SteadyPoint now);

 private:
  struct Said {
    AdvisorRank rank;
    PoolSizes cpus;  // of pools that may be advised
    SteadyPoint leads_until;
    SteadyPoint counts_until;  // a while longer: nobody has said otherwise yet
  };
  Status CheckCall(const AdviceCall& call, SteadyPoint now) const;
  /// Another advisor of the rank of `call` that leads `pool`. Empty: nobody.
  std::string RivalFor(const std::string& pool, const AdviceCall& call, SteadyPoint now) const;
  /// One of a higher rank than `rank` has said something of `pool`; also when its lease is over,
  /// while it is held.
  bool GivesWay(const std::string& pool, AdvisorRank rank) const;

  const AdvisorConfig config_;
  std::map<std::string, Said> said_;  // by advisor
};

}  // namespace qrm::cpu
