// Writes sentences of bounded length, whatever the number of hints.
#include "topology/merge_reasons.h"

#include <algorithm>

#include <fmt/format.h>

namespace qrm {
namespace {

constexpr std::size_t kShown = 4;

std::string TextOf(const NumaMask& mask) {
  return mask.Empty() ? "any node" : ToString(mask);
}

}  // namespace

std::string MasksText(const std::vector<NumaMask>& masks, std::size_t count) {
  const std::size_t shown = std::min(masks.size(), kShown);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    text += (i == 0 ? "" : " or ") + TextOf(masks[i]);
  }
  if (count > shown) {
    text += fmt::format(" or {} more", count - shown);
  }
  return text;
}

std::string NothingPreferredReason(std::string_view resource, const HintList& hints,
                                   std::string_view wanted) {
  if (hints.IsImpossible()) {
    return fmt::format("{}: no NUMA node can serve it", resource);
  }
  std::vector<NumaMask> masks;
  for (std::size_t i = 0; i < std::min(hints.hints().size(), kShown); ++i) {
    masks.push_back(hints.hints()[i].nodes);
  }
  return fmt::format("{}: none of its {} hints {}; it offers {}", resource, hints.hints().size(),
                     wanted, MasksText(masks, hints.hints().size()));
}

std::string ExclusionReason(std::string_view resource, const MaskSample& preferred,
                            const MaskSample& excluded, std::string_view before,
                            bool nothing_left) {
  return fmt::format("{}: prefers {}, which excludes {}{} that {} prefers", resource,
                     MasksText(preferred.first, preferred.count),
                     MasksText(excluded.first, excluded.count), nothing_left ? ", all" : "",
                     before);
}

}  // namespace qrm
