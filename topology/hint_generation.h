// Hints for amounts that NUMA nodes hold: few, narrow and close masks first, never all 2^n.
#pragma once

#include <map>

#include "api/hint.h"
#include "topology/machine.h"

namespace qrm {

/// How much each node has in total and free; units are the caller's.
struct NodeAmounts {
  std::map<int, double> total;
  std::map<int, double> free;
};

struct HintGenerationOptions {
  int max_nodes = 0;     ///< widest mask to offer; 0: as many as needed
  int max_hints = 4096;  ///< masks of a size are offered closest first up to this many in all
};

/// The masks that can serve `amount`: the narrowest first, among equals the closest; preferred are
/// those as narrow as total amounts allow. Impossible when no mask can. Cost: O(max_hints x nodes).
/// Source: Kubernetes 1.36 cpu and memory manager hints.
HintList GenerateHints(const Machine& machine, double amount, const NodeAmounts& nodes,
                       const HintGenerationOptions& options = {});

}  // namespace qrm
