// Says in a sentence what a resource's hints excluded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/hint.h"

namespace qrm {

/// "0 or 2-3", the first four masks and how many more there are.
/// Cost: O(1) in the number of masks.
std::string MasksText(const std::vector<NumaMask>& masks, std::size_t count);

/// Why `hints` of `resource` leave no preferred hint; `wanted` says what was looked for, such as
/// "is preferred". Cost: O(1) in the number of hints.
std::string NothingPreferredReason(std::string_view resource, const HintList& hints,
                                   std::string_view wanted);

/// The masks that a resource prefers or excludes: the first few, and how many there are.
/// Units: the kernel's node numbers, masks.
struct MaskSample {
  std::vector<NumaMask> first;
  std::size_t count = 0;
};

/// How the preference of `resource` excludes masks that the resources `before` it prefer;
/// `nothing_left` when those were the last. Cost: O(1).
std::string ExclusionReason(std::string_view resource, const MaskSample& preferred,
                            const MaskSample& excluded, std::string_view before, bool nothing_left);

}  // namespace qrm
