// For each mask that the aligned resources share, grows chains of nested masks of the others.
#include "topology/numeric_merge.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace qrm {
namespace {

/// Sets of other resources are bits of a word; the search visits all of them.
constexpr std::size_t kMaxOthers = 12;

bool Smaller(const NumaMask& a, const NumaMask& b) {
  return a.CompareAsNumber(b) < 0;
}

struct BySizeThenNumber {
  bool operator()(const NumaMask& a, const NumaMask& b) const {
    const int width_a = a.Count();
    const int width_b = b.Count();
    return width_a != width_b ? width_a < width_b : Smaller(a, b);
  }
};

bool Comparable(const NumaMask& a, const NumaMask& b) {
  return a.IsSubsetOf(b) || b.IsSubsetOf(a);
}

/// A resource's hints: its masks and whether each is preferred. The empty mask means no affinity.
using Choices = std::map<NumaMask, bool, BySizeThenNumber>;

Choices ChoicesOf(const HintList& list) {
  Choices choices;
  if (list.IsNoPreference()) {
    choices[NumaMask()] = true;
  }
  for (const TopologyHint& hint : list.hints()) {
    choices[hint.nodes] |= hint.preferred;
  }
  return choices;
}

bool HasWildcard(const Choices& choices) {
  const auto any = choices.find(NumaMask());
  return any != choices.end() && any->second;
}

/// Other resources with the same hints; they choose alike.
struct Other {
  Choices choices;
  std::vector<std::string> resources;
};

/// Some other resources with a mask each, nested in each other.
struct Chain {
  int preferred = 0;
  int total_width = 0;
  std::map<std::string, TopologyHint> hints;
};

bool SmallerHints(const std::map<std::string, TopologyHint>& a,
                  const std::map<std::string, TopologyHint>& b) {
  return std::lexicographical_compare(
      a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
        return std::pair(x.first, 0) < std::pair(y.first, 0) ||
               (x.first == y.first && Smaller(x.second.nodes, y.second.nodes));
      });
}

bool Better(const Chain& a, const Chain& b) {
  const auto rank = [](const Chain& c) { return std::pair(-c.preferred, c.total_width); };
  return rank(a) != rank(b) ? rank(a) < rank(b) : SmallerHints(a.hints, b.hints);
}

/// The best chain of each set of other resources (a bit each).
using Chains = std::map<uint32_t, Chain>;

void Keep(uint32_t covered, Chain chain, Chains& chains) {
  const auto [place, inserted] = chains.try_emplace(covered, chain);
  if (!inserted && Better(chain, place->second)) {
    place->second = std::move(chain);
  }
}

Chain With(Chain chain, const Other& other, const NumaMask& mask, bool preferred) {
  for (const std::string& resource : other.resources) {
    chain.preferred += preferred ? 1 : 0;
    chain.total_width += mask.Count();
    chain.hints[resource] = {.nodes = mask, .preferred = preferred};
  }
  return chain;
}

/// All that was chosen, with what ranks it.
struct Solution {
  Chain others;
  int widest = 0;
  int preferred_aligned = 0;
  int total_width = 0;
  NumaMask aligned_mask;
  std::map<std::string, TopologyHint> hints;

  bool BetterThan(const Solution& other) const {
    const auto rank = [](const Solution& s) {
      return std::tuple(-s.others.preferred, s.widest, -s.preferred_aligned, s.total_width);
    };
    return rank(*this) != rank(other) ? rank(*this) < rank(other)
                                      : SmallerHints(hints, other.hints);
  }
};

class NumericMerge {
 public:
  NumericMerge(const HintsByResource& hints, const std::vector<std::string>& align) {
    for (const auto& [resource, list] : hints) {
      if (std::ranges::find(align, resource) != align.end()) {
        aligned_.emplace_back(resource, ChoicesOf(list));
      } else {
        AddOther(resource, ChoicesOf(list));
      }
    }
  }

  MergeResult Merge() {
    if (others_.size() > kMaxOthers) {
      return Rejected(
          fmt::format("more than {} resources that are not aligned have different "
                      "hints; align more of them or use another policy",
                      kMaxOthers));
    }
    const std::vector<NumaMask> shared = SharedMasks();
    if (shared.empty()) {
      return Rejected(NothingSharedReason());
    }
    for (const NumaMask& mask : shared) {
      Consider(mask);
    }
    if (!best_.has_value()) {
      return Rejected(NothingNestsReason(shared));
    }
    const bool all_preferred =
        std::ranges::all_of(best_->hints, [](const auto& entry) { return entry.second.preferred; });
    return {.admit = true,
            .merged = {.nodes = best_->aligned_mask, .preferred = all_preferred},
            .hints = best_->hints};
  }

 private:
  void AddOther(const std::string& resource, Choices choices) {
    const auto alike = std::ranges::find_if(
        others_, [&choices](const Other& other) { return other.choices == choices; });
    if (alike != others_.end()) {
      alike->resources.push_back(resource);
    } else {
      others_.push_back({.choices = std::move(choices), .resources = {resource}});
    }
  }

  static MergeResult Rejected(std::string reason) {
    return {.admit = false, .reasons = {std::move(reason)}};
  }

  /// How an aligned resource takes part when all share `mask`; nothing when it cannot.
  static std::optional<TopologyHint> Aligned(const Choices& choices, const NumaMask& mask) {
    if (HasWildcard(choices)) {
      return TopologyHint{.preferred = true};
    }
    if (const auto same = choices.find(mask); same != choices.end()) {
      return TopologyHint{.nodes = mask, .preferred = same->second};
    }
    return std::nullopt;
  }

  /// The hints of the aligned resources when they share `mask`; empty when they cannot, or when
  /// none of them would be preferred.
  std::map<std::string, TopologyHint> AlignedHints(const NumaMask& mask) const {
    std::map<std::string, TopologyHint> hints;
    bool preferred = false;
    for (const auto& [resource, choices] : aligned_) {
      const std::optional<TopologyHint> hint = Aligned(choices, mask);
      if (!hint.has_value()) {
        return {};
      }
      preferred |= hint->preferred;
      hints[resource] = *hint;
    }
    return preferred ? hints : std::map<std::string, TopologyHint>();
  }

  std::vector<NumaMask> SharedMasks() const {
    if (aligned_.empty()) {
      return {NumaMask()};
    }
    Choices offered;
    for (const auto& [resource, choices] : aligned_) {
      offered.insert(choices.begin(), choices.end());
    }
    std::vector<NumaMask> shared;
    for (const auto& [mask, preferred] : offered) {
      if (!AlignedHints(mask).empty()) {
        shared.push_back(mask);
      }
    }
    return shared;
  }

  void Consider(const NumaMask& aligned_mask) {
    Solution solution;
    solution.aligned_mask = aligned_mask;
    solution.hints = AlignedHints(aligned_mask);
    for (const auto& [resource, hint] : solution.hints) {
      solution.preferred_aligned += hint.preferred ? 1 : 0;
      solution.total_width += hint.nodes.Count();
    }
    ForEachChain(aligned_mask, [&](const Chain& chain, int width) {
      Solution whole = solution;
      whole.others = chain;
      whole.widest = std::max(aligned_mask.Count(), width);
      whole.total_width += chain.total_width;
      whole.hints.insert(chain.hints.begin(), chain.hints.end());
      if (!best_.has_value() || whole.BetterThan(*best_)) {
        best_ = std::move(whole);
      }
    });
  }

  /// Calls `visit` with the best chain below each widest mask, for all other resources.
  template <typename Visit>
  void ForEachChain(const NumaMask& aligned_mask, Visit visit) const {
    const uint32_t everyone = (uint32_t{1} << others_.size()) - 1;
    const std::vector<NumaMask> masks = MasksNestingWith(aligned_mask);
    std::vector<Chains> ending_in(masks.size());
    const Chains start = WithoutAffinity();
    const auto report = [&](const Chains& chains, int width) {
      if (const auto whole = chains.find(everyone); whole != chains.end()) {
        visit(whole->second, width);
      }
    };
    report(start, 0);
    for (std::size_t i = 0; i < masks.size(); ++i) {
      Extend(start, masks[i], ending_in[i]);
      for (std::size_t below = 0; below < i; ++below) {
        if (masks[below].IsSubsetOf(masks[i])) {
          Extend(ending_in[below], masks[i], ending_in[i]);
        }
      }
      report(ending_in[i], masks[i].Count());
    }
  }

  /// The masks of other resources that contain `mask` or are contained in it, narrow ones first.
  std::vector<NumaMask> MasksNestingWith(const NumaMask& mask) const {
    std::vector<NumaMask> masks;
    for (const Other& other : others_) {
      if (HasWildcard(other.choices)) {
        continue;
      }
      for (const auto& [choice, preferred] : other.choices) {
        if (!choice.Empty() && Comparable(choice, mask)) {
          masks.push_back(choice);
        }
      }
    }
    std::ranges::sort(masks, BySizeThenNumber());
    masks.erase(std::unique(masks.begin(), masks.end()), masks.end());
    return masks;
  }

  /// Chains of the resources that have a hint without affinity. A preferred one is never bettered
  /// by a mask, so such resources take it.
  Chains WithoutAffinity() const {
    Chains chains = {{0, Chain()}};
    for (std::size_t i = 0; i < others_.size(); ++i) {
      const auto any = others_[i].choices.find(NumaMask());
      if (any == others_[i].choices.end()) {
        continue;
      }
      const Chains before = chains;
      if (any->second) {
        chains.clear();
      }
      for (const auto& [covered, chain] : before) {
        Keep(covered | (uint32_t{1} << i), With(chain, others_[i], NumaMask(), any->second),
             chains);
      }
    }
    return chains;
  }

  /// Adds to `to` the chains of `from` with `mask` on top, chosen by one or more resources.
  void Extend(const Chains& from, const NumaMask& mask, Chains& to) const {
    Chains grown = from;
    for (std::size_t i = 0; i < others_.size(); ++i) {
      const uint32_t bit = uint32_t{1} << i;
      const auto choice = others_[i].choices.find(mask);
      if (choice == others_[i].choices.end()) {
        continue;
      }
      const Chains before = grown;
      for (const auto& [covered, chain] : before) {
        if ((covered & bit) == 0) {
          Chain with = With(chain, others_[i], mask, choice->second);
          Keep(covered | bit, with, grown);
          Keep(covered | bit, std::move(with), to);
        }
      }
    }
  }

  std::string NothingSharedReason() const {
    std::string names;
    for (const auto& [resource, choices] : aligned_) {
      if (choices.empty()) {
        return NothingPreferredReason(resource, HintList::Impossible(), "");
      }
      names += (names.empty() ? "" : " and ") + resource;
    }
    std::string reason = names + " share no mask of which one hint is preferred: ";
    bool first = true;
    for (const auto& [resource, choices] : aligned_) {
      reason += fmt::format("{}{} offers {}", first ? "" : ", ", resource, Text(choices));
      first = false;
    }
    return reason;
  }

  std::string NothingNestsReason(const std::vector<NumaMask>& shared) const {
    for (const Other& other : others_) {
      if (other.choices.empty()) {
        return NothingPreferredReason(other.resources.front(), HintList::Impossible(), "");
      }
      const bool nests = std::ranges::any_of(other.choices, [&shared](const auto& choice) {
        return std::ranges::any_of(
            shared, [&choice](const NumaMask& mask) { return Comparable(choice.first, mask); });
      });
      if (!nests) {
        return fmt::format(
            "{}: offers {}, none of which nests with {}, that the aligned resources "
            "share",
            other.resources.front(), Text(other.choices), MasksText(shared, shared.size()));
      }
    }
    return fmt::format(
        "the masks of the other resources do not nest with each other around {}, that the aligned "
        "resources share",
        MasksText(shared, shared.size()));
  }

  static std::string Text(const Choices& choices) {
    std::vector<NumaMask> masks;
    for (const auto& [mask, preferred] : choices) {
      masks.push_back(mask);
    }
    return MasksText(masks, masks.size());
  }

  std::vector<std::pair<std::string, Choices>> aligned_;
  std::vector<Other> others_;
  std::optional<Solution> best_;
};

}  // namespace

MergeResult MergeNumeric(const HintsByResource& hints,
                         const std::vector<std::string>& align_resources) {
  return NumericMerge(hints, align_resources).Merge();
}

}  // namespace qrm
