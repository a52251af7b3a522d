// Every choice of one hint per list, each compared with the best so far.
#include "test/support/product_merge.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace qrm::test {
namespace {

using Lists = std::vector<std::vector<TopologyHint>>;
using Choice = std::vector<const TopologyHint*>;

std::vector<TopologyHint> Spelled(const HintList& list) {
  if (list.IsNoPreference()) {
    return {{.nodes = {}, .preferred = true}};
  }
  if (list.IsImpossible()) {
    return {{.nodes = {}, .preferred = false}};
  }
  return list.hints();
}

void ForEachChoice(const Lists& lists, Choice& choice,
                   const std::function<void(const Choice&)>& visit) {
  if (choice.size() == lists.size()) {
    visit(choice);
    return;
  }
  for (const TopologyHint& hint : lists[choice.size()]) {
    choice.push_back(&hint);
    ForEachChoice(lists, choice, visit);
    choice.pop_back();
  }
}

class KubeletMerge {
 public:
  KubeletMerge(const Machine& machine, const HintsByResource& hints, const MergeOptions& options)
      : machine_(machine),
        single_(options.policy == TopologyPolicy::kSingleNumaNode),
        closest_(options.prefer_closest_numa_nodes && !single_) {
    for (const auto& [resource, list] : hints) {
      lists_.push_back(single_ ? Single(Spelled(list)) : Spelled(list));
    }
    for (const std::vector<TopologyHint>& list : lists_) {
      wanted_ = std::max(wanted_, Narrowest(list));
    }
  }

  TopologyHint Merge() {
    Choice choice;
    ForEachChoice(lists_, choice, [this](const Choice& one) { Consider(Combined(one)); });
    TopologyHint merged =
        best_.value_or(TopologyHint{.nodes = machine_.node_mask(), .preferred = false});
    if (single_ && merged.nodes == machine_.node_mask()) {
      merged.nodes = NumaMask();
    }
    return merged;
  }

 private:
  static std::vector<TopologyHint> Single(std::vector<TopologyHint> hints) {
    hints.erase(
        std::remove_if(hints.begin(), hints.end(),
                       [](const TopologyHint& h) { return !h.preferred || h.nodes.Count() > 1; }),
        hints.end());
    return hints;
  }

  static int Narrowest(const std::vector<TopologyHint>& list) {
    int narrowest = 0;
    for (const TopologyHint& hint : list) {
      const int width = hint.nodes.Count();
      if (width > 0 && (narrowest == 0 || width < narrowest)) {
        narrowest = width;
      }
    }
    return narrowest;
  }

  TopologyHint Combined(const Choice& choice) const {
    TopologyHint merged{.nodes = machine_.node_mask(), .preferred = true};
    const NumaMask* first = nullptr;
    for (const TopologyHint* hint : choice) {
      merged.preferred &= hint->preferred;
      if (hint->nodes.Empty()) {
        continue;
      }
      merged.nodes &= hint->nodes;
      merged.preferred &= first == nullptr || *first == hint->nodes;
      first = first == nullptr ? &hint->nodes : first;
    }
    return merged;
  }

  double AverageDistance(const NumaMask& mask) const {
    double sum = 0;
    double pairs = 0;
    for (const int from : mask) {
      for (const int to : mask) {
        sum += static_cast<double>(machine_.Distance(from, to));
        ++pairs;
      }
    }
    return sum / pairs;
  }

  bool IsFitter(const NumaMask& candidate, const NumaMask& current) const {
    if (candidate.Count() != current.Count()) {
      return candidate.Count() < current.Count();
    }
    if (closest_) {
      const double a = AverageDistance(candidate);
      const double b = AverageDistance(current);
      if (a != b) {
        return a < b;
      }
    }
    return candidate.CompareAsNumber(current) < 0;
  }

  void Consider(const TopologyHint& candidate) {
    if (!candidate.nodes.Empty() && (!best_.has_value() || Beats(candidate, *best_))) {
      best_ = candidate;
    }
  }

  bool Beats(const TopologyHint& candidate, const TopologyHint& current) const {
    if (candidate.preferred != current.preferred) {
      return candidate.preferred;
    }
    const int c = current.nodes.Count();
    const int k = candidate.nodes.Count();
    const bool fitter = IsFitter(candidate.nodes, current.nodes);
    if (candidate.preferred || c > wanted_ || c == k) {
      return fitter;
    }
    if (c == wanted_ || k > wanted_) {
      return false;
    }
    return k == wanted_ || k > c;
  }

  const Machine& machine_;
  const bool single_;
  const bool closest_;
  Lists lists_;
  int wanted_ = 0;
  std::optional<TopologyHint> best_;
};

class NumericProduct {
 public:
  NumericProduct(const HintsByResource& hints, const std::vector<std::string>& align) {
    for (const auto& [resource, list] : hints) {
      names_.push_back(resource);
      aligned_.push_back(std::find(align.begin(), align.end(), resource) != align.end());
      lists_.push_back(list.IsImpossible() ? std::vector<TopologyHint>() : Spelled(list));
    }
  }

  ProductResult Merge() {
    Choice choice;
    ForEachChoice(lists_, choice, [this](const Choice& one) { Consider(one); });
    ProductResult result{.admit = best_.has_value()};
    for (std::size_t i = 0; best_.has_value() && i < names_.size(); ++i) {
      result.hints[names_[i]] = *(*best_)[i];
    }
    return result;
  }

 private:
  bool Allowed(const Choice& choice) const {
    const NumaMask* shared = nullptr;  // an empty mask: no affinity, and not preferred
    bool any_aligned = false;
    bool preferred = false;
    std::vector<const NumaMask*> masks;
    for (std::size_t i = 0; i < choice.size(); ++i) {
      const TopologyHint& hint = *choice[i];
      if (!hint.nodes.Empty()) {
        masks.push_back(&hint.nodes);
      }
      if (!aligned_[i]) {
        continue;
      }
      any_aligned = true;
      preferred |= hint.preferred;
      if (hint.nodes.Empty() && hint.preferred) {
        continue;
      }
      if (shared != nullptr && *shared != hint.nodes) {
        return false;
      }
      shared = &hint.nodes;
    }
    std::sort(masks.begin(), masks.end(),
              [](const NumaMask* a, const NumaMask* b) { return a->Count() < b->Count(); });
    for (std::size_t i = 1; i < masks.size(); ++i) {
      if (!masks[i - 1]->IsSubsetOf(*masks[i])) {
        return false;
      }
    }
    return preferred || !any_aligned;
  }

  std::tuple<int, int, int, int> Rank(const Choice& choice) const {
    int preferred_others = 0;
    int preferred_aligned = 0;
    int widest = 0;
    int total = 0;
    for (std::size_t i = 0; i < choice.size(); ++i) {
      (aligned_[i] ? preferred_aligned : preferred_others) += choice[i]->preferred ? 1 : 0;
      widest = std::max(widest, choice[i]->nodes.Count());
      total += choice[i]->nodes.Count();
    }
    return {-preferred_others, widest, -preferred_aligned, total};
  }

  void Consider(const Choice& choice) {
    if (!Allowed(choice)) {
      return;
    }
    const auto smaller = [](const TopologyHint* a, const TopologyHint* b) {
      return a->nodes.CompareAsNumber(b->nodes) < 0;
    };
    if (!best_.has_value() || Rank(choice) < Rank(*best_) ||
        (Rank(choice) == Rank(*best_) &&
         std::lexicographical_compare(choice.begin(), choice.end(), best_->begin(), best_->end(),
                                      smaller))) {
      best_ = choice;
    }
  }

  std::vector<std::string> names_;
  std::vector<bool> aligned_;
  Lists lists_;
  std::optional<Choice> best_;
};

}  // namespace

ProductResult MergeByProduct(const Machine& machine, const HintsByResource& hints,
                             const MergeOptions& options) {
  if (options.policy == TopologyPolicy::kNone) {
    return {};
  }
  if (options.policy == TopologyPolicy::kNumeric) {
    return NumericProduct(hints, options.align_resources).Merge();
  }
  ProductResult result{.merged = KubeletMerge(machine, hints, options).Merge()};
  result.admit = options.policy == TopologyPolicy::kBestEffort || result.merged.preferred;
  return result;
}

}  // namespace qrm::test
