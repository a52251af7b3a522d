// Plans made from one state: a container is planned for its hints, and again for its allocation.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "api/base/status.h"
#include "plugins/cpu/elastic.h"
#include "plugins/cpu/state.h"

namespace qrm::cpu {

/// The pools with each of the latest candidates. Every change of the state must call Forget.
///
/// Threads: one at a time.
class PlanMemo {
 public:
  /// Null when there is no plan for `candidate` while the CPUs of `offline` are offline. Valid
  /// until the memo changes. Cost: O(plans).
  const StatusOr<PoolMap>* Find(const Candidate& candidate, const CpuSet& offline) const;
  void Keep(Candidate candidate, CpuSet offline, StatusOr<PoolMap> planned);
  /// The same for PoolsAsRequested.
  const PoolMap* FindAsRequested(const CpuSet& offline) const {
    return as_requested_.has_value() && as_requested_->first == offline ? &as_requested_->second
                                                                        : nullptr;
  }
  void KeepAsRequested(CpuSet offline, PoolMap pools) {
    as_requested_.emplace(std::move(offline), std::move(pools));
  }
  void Forget() {
    plans_.clear();
    as_requested_.reset();
  }

 private:
  struct Plan {
    Candidate candidate;
    CpuSet offline;
    StatusOr<PoolMap> pools;
  };
  std::vector<Plan> plans_;
  std::optional<std::pair<CpuSet, PoolMap>> as_requested_;
};

}  // namespace qrm::cpu
