// Policy numeric, whose aligned resources share a mask with which all others nest, and the
// sentences that all policies give as reasons.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/hint.h"
#include "topology/merge.h"

namespace qrm {

/// As MergeHints, for policy numeric. Rejects more than 12 different hint lists among the resources
/// that are not aligned, and says so: the search doubles with each.
/// Units, cost, source: as MergeHints.
MergeResult MergeNumeric(const HintsByResource& hints,
                         const std::vector<std::string>& align_resources);

/// "0 or 2-3", the first four masks and how many more there are.
/// Cost: O(1) in the number of masks.
std::string MasksText(const std::vector<NumaMask>& masks, std::size_t count);

/// Why `hints` of `resource` leave no preferred hint; `wanted` says what was looked for, such as
/// "is preferred". Cost: O(1) in the number of hints.
std::string NothingPreferredReason(std::string_view resource, const HintList& hints,
                                   std::string_view wanted);

}  // namespace qrm
