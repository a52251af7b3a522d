// Implements kubelet's four policies for machines of any number of nodes.
#include "topology/merge.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "topology/merge_search.h"
#include "topology/numeric_merge.h"

namespace qrm {
namespace {

struct PolicyName {
  TopologyPolicy policy;
  std::string_view name;
};
constexpr std::array<PolicyName, 5> kPolicyNames = {
    {{TopologyPolicy::kNone, "none"},
     {TopologyPolicy::kBestEffort, "best-effort"},
     {TopologyPolicy::kRestricted, "restricted"},
     {TopologyPolicy::kSingleNumaNode, "single-numa-node"},
     {TopologyPolicy::kNumeric, "numeric"}}};

/// How many masks a sentence shows.
constexpr std::size_t kShown = 4;

/// The masks that a resource prefers or excludes: the first few, and how many there are.
struct MaskSample {
  std::vector<NumaMask> first;
  std::size_t count = 0;
};

/// How the preference of `resource` excludes masks that the resources `before` it prefer;
/// `nothing_left` when those were the last. Cost: O(1).
std::string ExclusionReason(std::string_view resource, const MaskSample& preferred,
                            const MaskSample& excluded, std::string_view before,
                            bool nothing_left) {
  return fmt::format("{}: prefers {}, which excludes {}{} that {} prefers", resource,
                     MasksText(preferred.first, preferred.count),
                     MasksText(excluded.first, excluded.count), nothing_left ? ", all" : "",
                     before);
}

/// One merge on a machine of at most 64 x Words nodes.
template <std::size_t Words>
class Merger {
 public:
  using Bits = NodeBits<Words>;

  Merger(const Machine& machine, const HintsByResource& hints, const MergeOptions& options)
      : nodes_(machine),
        all_(nodes_.template All<Words>()),
        single_(options.policy == TopologyPolicy::kSingleNumaNode),
        hints_(hints) {
    if (options.prefer_closest_numa_nodes && !single_) {
      fitness_ = Fitness<Words>(machine, nodes_);
    }
    for (const auto& [resource, list] : hints) {
      lists_.push_back(PrepareList<Words>(
          list, nodes_, single_ ? HintFilter::kPreferredSingleNode : HintFilter::kAll));
    }
  }

  MergeResult Merge() {
    const CommonPreference<Words> common = FindCommonPreference(lists_);
    const Agreement<Words> agreed = Agree(lists_, common, all_, fitness_, WidestNeed(lists_));
    truncated_ = agreed.truncated;
    TopologyHint merged{.preferred = agreed.preferred};
    if (!single_ || !(agreed.nodes == all_)) {
      merged.nodes = nodes_.MaskOf(agreed.nodes);
    }
    MergeResult result{.merged = merged, .reasons = Explain(common)};
    for (const auto& [resource, list] : hints_) {
      result.hints[resource] = merged;
    }
    return result;
  }

 private:
  std::vector<std::string> Explain(const CommonPreference<Words>& common) const {
    std::vector<std::string> reasons;
    std::string before;
    std::size_t index = 0;
    for (const auto& [resource, hints] : hints_) {
      const std::size_t i = index++;
      const MergeList<Words>& list = lists_[i];
      if (list.any_node_preferred) {
        continue;
      }
      if (list.preferred.empty()) {
        reasons.push_back(NothingPreferredReason(
            resource, hints, single_ ? "is a preferred single NUMA node" : "is preferred"));
      } else if (!common.excluded[i].empty()) {
        reasons.push_back(ExclusionReason(resource, SampleOf(list.preferred),
                                          SampleOf(common.excluded[i]), before,
                                          common.emptied_by == i));
      }
      before += (before.empty() ? "" : " with ") + resource;
    }
    if (truncated_) {
      reasons.push_back(fmt::format(
          "the hints overlap in more than {} ways; the best of those compared was taken",
          ReachableMasks<Words>::kMaxReachable));
    }
    return reasons;
  }

  MaskSample SampleOf(const std::vector<Bits>& masks) const {
    MaskSample sample{.count = masks.size()};
    for (std::size_t i = 0; i < std::min(masks.size(), kShown); ++i) {
      sample.first.push_back(nodes_.MaskOf(masks[i]));
    }
    return sample;
  }

  NodeIndex nodes_;
  Bits all_;
  bool single_;
  const HintsByResource& hints_;
  Fitness<Words> fitness_;
  std::vector<MergeList<Words>> lists_;  // in the order of hints_
  bool truncated_ = false;
};

MergeResult MergeByWidth(const Machine& machine, const HintsByResource& hints,
                         const MergeOptions& options) {
  const std::size_t nodes = machine.nodes().size();
  if (nodes <= 64) {
    return Merger<1>(machine, hints, options).Merge();
  }
  if (nodes <= 128) {
    return Merger<2>(machine, hints, options).Merge();
  }
  if (nodes <= 1024) {
    return Merger<16>(machine, hints, options).Merge();
  }
  return Merger<IdSet::kMaxIds / 64>(machine, hints, options).Merge();
}

MergeResult MergeNothing(const HintsByResource& hints) {
  MergeResult result;
  for (const auto& [resource, list] : hints) {
    result.hints[resource] = TopologyHint();
  }
  return result;
}

}  // namespace

std::string MasksText(const std::vector<NumaMask>& masks, std::size_t count) {
  const std::size_t shown = std::min(masks.size(), kShown);
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    text += (i == 0 ? "" : " or ") + (masks[i].Empty() ? "any node" : ToString(masks[i]));
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

StatusOr<TopologyPolicy> ParseTopologyPolicy(std::string_view text) {
  for (const PolicyName& known : kPolicyNames) {
    if (known.name == text) {
      return known.policy;
    }
  }
  return Errorf(StatusCode::kInvalidArgument,
                "cannot read topology policy \"{}\": it is not known; write none, best-effort, "
                "restricted, single-numa-node or numeric",
                Quoted(text));
}

std::string_view ToString(TopologyPolicy policy) {
  for (const PolicyName& known : kPolicyNames) {
    if (known.policy == policy) {
      return known.name;
    }
  }
  return "unknown";
}

StatusOr<TopologyScope> ParseTopologyScope(std::string_view text) {
  for (const TopologyScope scope : {TopologyScope::kContainer, TopologyScope::kPod}) {
    if (text == ToString(scope)) {
      return scope;
    }
  }
  return Errorf(StatusCode::kInvalidArgument,
                "cannot read topology scope \"{}\": it is not known; write container or pod",
                Quoted(text));
}

std::string_view ToString(TopologyScope scope) {
  return scope == TopologyScope::kPod ? "pod" : "container";
}

MergeResult MergeHints(const Machine& machine, const HintsByResource& hints,
                       const MergeOptions& options) {
  switch (options.policy) {
    case TopologyPolicy::kNone:
      return MergeNothing(hints);
    case TopologyPolicy::kNumeric:
      return MergeNumeric(hints, options.align_resources);
    case TopologyPolicy::kBestEffort:
      return MergeByWidth(machine, hints, options);
    case TopologyPolicy::kRestricted:
    case TopologyPolicy::kSingleNumaNode:
      break;
  }
  MergeResult result = MergeByWidth(machine, hints, options);
  result.admit = result.merged.preferred;
  if (!result.admit && result.reasons.empty()) {
    result.reasons.emplace_back("no NUMA node remains that every resource prefers");
  }
  return result;
}

}  // namespace qrm
