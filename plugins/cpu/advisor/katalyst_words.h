// Requests to Katalyst's advisor, and the meaning of its answers. Values only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/cpu/advisor/desk.h"
#include "plugins/cpu/sizing/advice.h"

namespace cpuadvisor {
class GetAdviceRequest;
class GetAdviceResponse;
}  // namespace cpuadvisor

namespace qrm::cpu {

/// Elastic pools, the reserved CPUs as pool "reserve", and containers as far as their requests are
/// known.
cpuadvisor::GetAdviceRequest QuestionOf(const NodeSight& node);

/// An answer after parsing.
struct KatalystAdvice {
  std::vector<Advice> pools;         ///< in the order of their names
  std::map<int, double> headroom;    ///< CPUs by NUMA node that batch work can count on
  std::vector<std::string> unknown;  ///< pools that are not on this node

  bool operator==(const KatalystAdvice&) const = default;
};

/// A pool's CPUs are its blocks of all NUMA nodes together. CPUs with two names have one owner: a
/// container before a pool, and "reclaim" last, which uses them by `lend` here. Errors:
/// kInvalidArgument for a headroom that cannot be read.
StatusOr<KatalystAdvice> AdviceIn(const cpuadvisor::GetAdviceResponse& answer,
                                  const NodeSight& node);

}  // namespace qrm::cpu
