// Limits advice to what pools may have, and forgets advice that is not renewed.
#include "plugins/cpu/sizing/advice.h"

#include <algorithm>
#include <cstddef>
#include <set>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "plugins/cpu/config/instances.h"

namespace qrm::cpu {
namespace {

/// Bounds of one call and of the number of advisors: all advice is kept until it expires.
constexpr std::size_t kMaxEntries = 1024;
constexpr std::size_t kMaxAdvisors = 16;
constexpr std::size_t kMaxName = 64;

int StepOf(const AdvisedNode& node, const std::string& pool) {
  const auto step = node.steps.find(pool);
  return step != node.steps.end() && step->second > 0 ? step->second : CpuSet::kMaxIds;
}

int SizeOf(const PoolSizes& sizes, const std::string& pool) {
  const auto size = sizes.find(pool);
  return size == sizes.end() ? 0 : size->second;
}

bool MayBeAdvised(const AdvisorConfig& config, const AdvisedNode& node, const std::string& pool) {
  return node.asks.contains(pool) && config.Advises(std::string(ConfiguredName(pool)));
}

AdviceResult ResultOf(const AdvisedNode& node, const Advice& advice, int had) {
  const PoolAsk& ask = node.asks.at(advice.pool);
  const int size = SizeOf(node.sizes, advice.pool);
  const int step = StepOf(node, advice.pool);
  AdviceResult result{.pool = advice.pool, .applied = std::clamp(had, size - step, size + step)};
  const int least = LeastByAdvice(ask);
  const int wanted = std::clamp(advice.cpus, least, ask.max);
  if (result.applied != had) {
    result.clipped = AdviceClip::kStep;
  } else if (had < wanted) {
    result.clipped = AdviceClip::kCapacity;
  } else if (wanted != advice.cpus) {
    result.clipped = wanted < advice.cpus ? AdviceClip::kMax
                     : least > ask.min    ? AdviceClip::kRequests
                                          : AdviceClip::kMin;
  }
  return result;
}

}  // namespace

std::vector<AdviceResult> ClipAdvice(const AdvisorConfig& config, const AdvisedNode& node,
                                     const AdviceCall& call, const PoolSizes& in_force) {
  const bool stale = call.generation != node.generation;
  const PoolSizes sizes = SizePools(WithAdvice(node.asks, in_force), node.capacity);
  std::vector<AdviceResult> results;
  results.reserve(call.entries.size());
  for (const Advice& advice : call.entries) {
    if (!MayBeAdvised(config, node, advice.pool)) {
      results.push_back({.pool = advice.pool, .clipped = AdviceClip::kUnknown});
    } else if (stale) {
      results.push_back({.pool = advice.pool,
                         .applied = SizeOf(node.sizes, advice.pool),
                         .clipped = AdviceClip::kStale});
    } else {
      results.push_back(ResultOf(node, advice, SizeOf(sizes, advice.pool)));
    }
  }
  return results;
}

PoolAsks WithAdvice(PoolAsks asks, const PoolSizes& advised) {
  for (const auto& [pool, cpus] : advised) {
    const auto ask = asks.find(pool);
    if (ask == asks.end()) {
      continue;
    }
    const int wanted = std::max(cpus, LeastByAdvice(ask->second));
    ask->second.sought = wanted;
    ask->second.wish = WishOf({.milli_cpus = int64_t{wanted} * 1000}, 100, ask->second);
    ask->second.firm = std::min(ask->second.firm, ask->second.wish);
  }
  return asks;
}

PoolSizes NextAdvice(const AdvisedNode& node, const PoolSizes& now, const PoolSizes& wanted) {
  PoolSizes next;
  for (const auto& [pool, cpus] : wanted) {
    const auto ask = node.asks.find(pool);
    if (ask == node.asks.end()) {
      continue;
    }
    const auto before = now.find(pool);
    const int from = before != now.end() ? before->second : SizeOf(node.sizes, pool);
    const int step = StepOf(node, pool);
    const int to = std::clamp(cpus, LeastByAdvice(ask->second), ask->second.max);
    next[pool] = std::clamp(to, from - step, std::max(from + step, std::min(to, ask->second.firm)));
  }
  return next;
}

Status AdviceBook::CheckCall(const AdviceCall& call, SteadyPoint now) const {
  if (call.advisor.empty() || call.advisor.size() > kMaxName) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot take advice: the advisor's name has {} letters; use 1 to {}",
                  call.advisor.size(), kMaxName);
  }
  if (call.entries.size() > kMaxEntries) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot take advice of {} for {} pools: at most {} are allowed",
                  Quoted(call.advisor), call.entries.size(), kMaxEntries);
  }
  if (!said_.contains(call.advisor) && said_.size() >= kMaxAdvisors) {
    return Errorf(
        StatusCode::kResourceExhausted,
        "cannot take advice of {}: {} other advisors are active; wait until a lease expires",
        Quoted(call.advisor), said_.size());
  }
  std::set<std::string> named;
  for (const Advice& advice : call.entries) {
    if (!named.insert(advice.pool).second) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot take advice of {}: it names pool {} twice", Quoted(call.advisor),
                    Quoted(advice.pool));
    }
    if (const std::string rival = RivalFor(advice.pool, call, now); !rival.empty()) {
      return Errorf(StatusCode::kResourceExhausted,
                    "cannot take advice of {}: {} leads pool {}; name other pools, or "
                    "wait until its lease expires",
                    Quoted(call.advisor), Quoted(rival), advice.pool);
    }
  }
  return OkStatus();
}

std::string AdviceBook::RivalFor(const std::string& pool, const AdviceCall& call,
                                 SteadyPoint now) const {
  for (const auto& [advisor, said] : said_) {
    if (advisor != call.advisor && said.rank == call.rank && now < said.leads_until &&
        said.cpus.contains(pool)) {
      return advisor;
    }
  }
  return "";
}

bool AdviceBook::GivesWay(const std::string& pool, AdvisorRank rank) const {
  return std::any_of(said_.begin(), said_.end(), [&](const auto& said) {
    return said.second.rank > rank && said.second.cpus.contains(pool);
  });
}

StatusOr<std::vector<AdviceResult>> AdviceBook::Take(const AdviceCall& call,
                                                     const AdvisedNode& node, SteadyPoint now) {
  PoolSizes in_force = InForce(now);
  QRM_RETURN_IF_ERROR(CheckCall(call, now));
  if (call.generation != node.generation) {
    return ClipAdvice(config_, node, call, in_force);
  }
  const auto most = call.rank == AdvisorRank::kConnected ? config_.lease : call.lease;
  const auto lease = call.lease.count() > 0 ? std::min(call.lease, most) : most;
  Said said{.rank = call.rank,
            .cpus = {},
            .leads_until = now + lease,
            .counts_until = now + lease + config_.hold};
  for (const Advice& advice : call.entries) {
    if (MayBeAdvised(config_, node, advice.pool) && !GivesWay(advice.pool, call.rank)) {
      said.cpus[advice.pool] = std::clamp(advice.cpus, 0, CpuSet::kMaxIds);
      // The advisor that led the pool before has no lease left.
      for (auto& [advisor, former] : said_) {
        former.cpus.erase(advice.pool);
      }
    }
  }
  said_[call.advisor] = std::move(said);
  in_force = InForce(now);
  return ClipAdvice(config_, node, call, in_force);
}

PoolSizes AdviceBook::InForce(SteadyPoint now) {
  std::erase_if(said_, [now](const auto& said) { return now >= said.second.counts_until; });
  PoolSizes cpus;
  for (const auto& [advisor, said] : said_) {
    cpus.insert(said.cpus.begin(), said.cpus.end());
  }
  return cpus;
}

}  // namespace qrm::cpu
