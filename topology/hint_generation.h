// Hints for amounts that NUMA nodes hold: few, narrow and close masks first, never all 2^n.
#pragma once

#include <functional>
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
/// those as narrow as total amounts allow. Impossible when no mask can; no preference when `amount`
/// is not positive. All masks up to 12 nodes (4,095 of them) with the default options, as kubelet
/// offers them; on larger machines what VisitMasks visits first.
/// Cost: O(max_hints x nodes) plus VisitMasks'.
/// Source: Kubernetes 1.36 cpu and memory manager hints.
HintList GenerateHints(const Machine& machine, double amount, const NodeAmounts& nodes,
                       const HintGenerationOptions& options = {});

/// Calls `visit` with masks of `width` nodes of `candidates`, those with the smallest sum of
/// distances first and among equals the smallest number, until it returns false or there are no
/// more. Where there are more than 65,536 masks of that width, only the closest ones around each
/// node are visited: for each node the node itself and its nearest ones.
/// Cost: O(masks x width squared + masks log masks), masks at most 65,536.
/// Source: ours; distances as in the SLIT.
void VisitMasks(const Machine& machine, const NumaMask& candidates, int width,
                const std::function<bool(const NumaMask&)>& visit);

}  // namespace qrm
