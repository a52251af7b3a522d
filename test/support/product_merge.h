// Merges hints the plain way, by the product of all lists, to check the fast merge.
#pragma once

#include <map>
#include <string>

#include "api/hint.h"
#include "topology/machine.h"
#include "topology/merge.h"

namespace qrm::test {

/// The outcome of a merge, without reasons.
struct ProductResult {
  bool admit = true;
  TopologyHint merged;                        ///< all policies but numeric
  std::map<std::string, TopologyHint> hints;  ///< policy numeric
};

/// As MergeHints, candidate by candidate. Cost: the product of the lists' lengths.
/// Source: Kubernetes 1.36, HintMerger; numeric as topology/merge.h says.
ProductResult MergeByProduct(const Machine& machine, const HintsByResource& hints,
                             const MergeOptions& options);

}  // namespace qrm::test
