// Policy numeric: aligned resources share a mask, all others nest with it.
#pragma once

#include <string>
#include <vector>

#include "api/hint.h"
#include "topology/merge.h"

namespace qrm {

/// As MergeHints, for policy numeric. Rejects more than 12 different hint lists among the resources
/// that are not aligned, and says so: the search doubles with each.
/// Units, cost, source: as MergeHints.
MergeResult MergeNumeric(const HintsByResource& hints,
                         const std::vector<std::string>& align_resources);

}  // namespace qrm
