// Rows about merging hints and about its parts.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "test/vector_check/report.h"
#include "topology/merge.h"
#include "topology/merge_search.h"

namespace qrm::vectors {
namespace {

using Bits = NodeBits<1>;

/// A machine of these nodes and, when `distances` has a row for each, distances.
Machine MachineOf(const std::set<int>& nodes, const Json& distances) {
  MachineParts parts;
  for (const int id : nodes) {
    parts.nodes.push_back({.id = id});
    if (distances.is_object() && distances.contains(std::to_string(id))) {
      parts.distances.push_back(distances.at(std::to_string(id)).get<std::vector<uint64_t>>());
    }
  }
  const bool complete =
      std::all_of(parts.distances.begin(), parts.distances.end(),
                  [&nodes](const auto& row) { return row.size() == nodes.size(); });
  if (parts.distances.size() != nodes.size() || !complete) {
    parts.distances.clear();
  }
  return Machine(std::move(parts));
}

/// Nodes 0 to 63: rows about parts of the merge do not say which nodes there are.
Machine AnyMachine() {
  std::set<int> nodes;
  for (int id = 0; id < 64; ++id) {
    nodes.insert(id);
  }
  return MachineOf(nodes, nullptr);
}

Machine MachineOfDistances(const Json& distances) {
  std::set<int> nodes;
  for (const auto& [id, row] : distances.items()) {
    nodes.insert(std::stoi(id));
  }
  return nodes.empty() ? AnyMachine() : MachineOf(nodes, distances);
}

TopologyHint HintFrom(const Json& hint) {
  return {.nodes = MaskOf(hint.at("numa")), .preferred = hint.at("preferred").get<bool>()};
}

HintList ListOf(const Json& hints) {
  if (hints.is_null()) {
    return HintList::NoPreference();
  }
  std::vector<TopologyHint> list;
  for (const Json& hint : hints) {
    list.push_back(HintFrom(hint));
  }
  return HintList(std::move(list));
}

HintsByResource ProvidersHints(const Json& providers) {
  HintsByResource hints;
  std::size_t provider = 0;
  for (const Json& resources : providers) {
    const std::string prefix = fmt::format("{:04}/", provider++);
    if (resources.is_null() || resources.empty()) {
      hints[prefix] = HintList::NoPreference();
      continue;
    }
    for (const auto& [resource, list] : resources.items()) {
      hints[prefix + resource] = ListOf(list);
    }
  }
  return hints;
}

std::string Text(const TopologyHint& hint, bool admit) {
  return fmt::format("{}, {}", ToString(hint), admit ? "admitted" : "rejected");
}

Difference CheckMerge(const Json& row) {
  const StatusOr<TopologyPolicy> policy = ParseTopologyPolicy(row.at("policy").get<std::string>());
  if (!policy.ok()) {
    return MessageOf(policy.status());
  }
  MergeOptions options{.policy = *policy};
  if (row.contains("options")) {
    options.prefer_closest_numa_nodes = row.at("options").value("prefer-closest-numa-nodes", false);
  }
  const Machine machine =
      MachineOf(row.at("numa_nodes").get<std::set<int>>(), row.value("numa_distances", Json()));
  const MergeResult result = MergeHints(machine, ProvidersHints(row.at("providers")), options);
  if (!result.admit && result.reasons.empty()) {
    return "rejected without a reason";
  }
  const Json& expected = row.at("expected");
  const bool admit = expected.value("admit", result.admit);
  return Compare(Text(result.merged, result.admit), Text(HintFrom(expected), admit));
}

/// Lets a list of both hints agree with itself, which picks the better one.
Difference CheckCompare(const Json& row) {
  const Machine machine = AnyMachine();
  const NodeIndex nodes(machine);
  const Json& candidate = row.at("candidate");
  const Json& current = row.at("current");
  const auto listed = [](const Json& hint) {
    return !hint.is_null() && !hint.at("numa").is_null() && !hint.at("numa").empty();
  };
  std::vector<TopologyHint> hints;
  for (const Json* hint : {&current, &candidate}) {
    if (listed(*hint)) {
      hints.push_back(HintFrom(*hint));
    }
  }
  const std::vector<MergeList<1>> lists = {
      PrepareList<1>(HintList(hints), nodes, HintFilter::kAll)};
  const Agreement<1> agreed =
      Agree(lists, FindCommonPreference(lists), nodes.All<1>(), Fitness<1>(),
            row.at("best_non_preferred_affinity_count").get<int>());
  const TopologyHint best{.nodes = nodes.MaskOf(agreed.nodes), .preferred = agreed.preferred};
  const bool keeps = !listed(candidate) || (listed(current) && best == HintFrom(current));
  return Compare(keeps ? "current" : "candidate", row.at("expected").get<std::string>());
}

Difference CheckWidestNeed(const Json& row) {
  const Machine machine = AnyMachine();
  std::vector<MergeList<1>> lists;
  for (const Json& list : row.at("hints")) {
    lists.push_back(PrepareList<1>(ListOf(list), NodeIndex(machine), HintFilter::kAll));
  }
  return Compare(std::to_string(WidestNeed(lists)), std::to_string(row.at("expected").get<int>()));
}

Difference CheckAverageDistance(const Json& row) {
  const Machine machine = MachineOfDistances(row.at("distances"));
  const NodeIndex nodes(machine);
  const Bits mask = nodes.BitsOf<1>(MaskOf(row.at("mask")));
  const int width = mask.Count();
  const auto sum = static_cast<double>(Fitness<1>(machine, nodes).SumOfDistances(mask));
  const double average = width == 0 ? 0 : sum / (static_cast<double>(width) * width);
  const auto expected = row.at("expected").get<double>();
  return std::abs(average - expected) < 1e-9
             ? ""
             : Compare(fmt::format("{}", average), fmt::format("{}", expected));
}

Difference CheckClosest(const Json& row) {
  const Machine machine = MachineOfDistances(row.at("distances"));
  const NodeIndex nodes(machine);
  const Bits current = nodes.BitsOf<1>(MaskOf(row.at("current")));
  const Bits candidate = nodes.BitsOf<1>(MaskOf(row.at("candidate")));
  const bool keeps = Fitness<1>(machine, nodes).Fittest({current, candidate}) == current;
  return Compare(keeps ? "current" : "candidate", row.at("expected").get<std::string>());
}

Difference CheckNarrower(const Json& row) {
  const Machine machine = AnyMachine();
  const NodeIndex nodes(machine);
  const Bits a = nodes.BitsOf<1>(MaskOf(row.at("a")));
  const Bits b = nodes.BitsOf<1>(MaskOf(row.at("b")));
  const bool narrower = !(a == b) && Fitness<1>().Fittest({b, a}) == a;
  return Compare(narrower ? "narrower" : "not narrower",
                 row.at("a_narrower_than_b").get<bool>() ? "narrower" : "not narrower");
}

std::string Text(const MergeList<1>& list, const NodeIndex& nodes) {
  std::string text = list.any_node_preferred ? "any preferred" : "";
  text += list.any_node && !list.any_node_preferred ? "any not preferred" : "";
  for (const Bits& mask : list.masks) {
    const bool preferred = std::binary_search(list.preferred.begin(), list.preferred.end(), mask);
    text += fmt::format(" [{}{}]", ToString(nodes.MaskOf(mask)), preferred ? " preferred" : "");
  }
  return text;
}

Difference CheckSingleNumaFilter(const Json& row) {
  const Machine machine = AnyMachine();
  const NodeIndex nodes(machine);
  const Json& expected = row.at("expected");
  if (row.at("input").size() != expected.size()) {
    return "the row has different numbers of lists";
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const MergeList<1> got =
        PrepareList<1>(ListOf(row.at("input")[i]), nodes, HintFilter::kPreferredSingleNode);
    // An empty list of the row means that nothing is left, not that nothing can serve.
    const MergeList<1> wanted = expected[i].empty()
                                    ? MergeList<1>()
                                    : PrepareList<1>(ListOf(expected[i]), nodes, HintFilter::kAll);
    if (Difference difference = Compare(Text(got, nodes), Text(wanted, nodes));
        !difference.empty()) {
      return difference;
    }
  }
  return "";
}

}  // namespace

void CheckTopology(const Json& file, Report& report) {
  report.Section(file, "merge", CheckMerge);
  report.Section(file, "compare_hints", CheckCompare);
  report.Section(file, "max_of_min_affinity_counts", CheckWidestNeed);
  report.Section(file, "average_distance", CheckAverageDistance);
  report.Section(file, "closest", CheckClosest);
  report.Section(file, "single_numa_filter", CheckSingleNumaFilter);
  report.Section(file, "narrower_order", CheckNarrower);
}

}  // namespace qrm::vectors
