// Keeps a few plans.
#include "plugins/cpu/plan_memo.h"

#include <algorithm>

namespace qrm::cpu {
namespace {

/// One for each NUMA node of a container's hints, except on the largest machines.
constexpr std::size_t kMostPlans = 16;

}  // namespace

const StatusOr<PoolMap>* PlanMemo::Find(const Candidate& candidate, const CpuSet& offline) const {
  const auto plan = std::find_if(plans_.begin(), plans_.end(), [&](const Plan& of) {
    return of.candidate == candidate && of.offline == offline;
  });
  return plan == plans_.end() ? nullptr : &plan->pools;
}

void PlanMemo::Keep(Candidate candidate, CpuSet offline, StatusOr<PoolMap> planned) {
  if (plans_.size() == kMostPlans) {
    plans_.clear();
  }
  plans_.push_back({std::move(candidate), std::move(offline), std::move(planned)});
}

}  // namespace qrm::cpu
