#include "plugins/placement/device_hints.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace qrm::placement {
namespace {

/// Of so many nodes all sets are looked at.
constexpr std::size_t kMostNodes = 10;

/// The nodes of `machine` among `nodes`, in their order.
std::vector<int> Known(const Machine& machine, const std::vector<int>& nodes) {
  std::vector<int> known;
  for (const int id : nodes) {
    const NumaNode* const node = machine.FindNode(id);
    for (const int home : node == nullptr ? NumaMask() : node->homes) {
      if (std::find(known.begin(), known.end(), home) == known.end()) {
        known.push_back(home);
      }
    }
  }
  return known;
}

/// The nodes whose bits `number` has, as places in `nodes`.
NumaMask Subset(const std::vector<int>& nodes, uint32_t number) {
  NumaMask subset;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if ((number >> i & 1) != 0) {
      subset.Add(nodes[i]);
    }
  }
  return subset;
}

/// The smallest sets of `nodes` that meet each of `devices`.
std::vector<TopologyHint> SmallestSets(const std::vector<int>& nodes,
                                       const std::vector<NumaMask>& devices) {
  std::vector<TopologyHint> smallest;
  for (uint32_t number = 1; number < uint32_t{1} << nodes.size(); ++number) {
    NumaMask set = Subset(nodes, number);
    const bool meets_all = std::all_of(devices.begin(), devices.end(),
                                       [&](const NumaMask& near) { return near.Intersects(set); });
    if (!meets_all || (!smallest.empty() && set.Count() > smallest.front().nodes.Count())) {
      continue;
    }
    if (!smallest.empty() && set.Count() < smallest.front().nodes.Count()) {
      smallest.clear();
    }
    smallest.push_back({.nodes = std::move(set), .preferred = true});
  }
  return smallest;
}

}  // namespace

HintList HintsOfDevice(const Machine& machine, const std::vector<int>& nodes) {
  std::vector<TopologyHint> hints;
  for (const int node : Known(machine, nodes)) {
    hints.push_back({.nodes = {node}, .preferred = hints.empty()});
  }
  return hints.empty() ? HintList::NoPreference() : HintList(std::move(hints));
}

HintList HintsOfDevices(const Machine& machine, const std::vector<NumaMask>& devices) {
  NumaMask common = machine.node_mask();
  NumaMask all;
  std::vector<NumaMask> near_nodes;
  for (const NumaMask& device : devices) {
    NumaMask near;
    for (const int node : Known(machine, {device.begin(), device.end()})) {
      near.Add(node);
    }
    if (!near.Empty()) {
      common &= near;
      all |= near;
      near_nodes.push_back(std::move(near));
    }
  }
  if (all.Empty()) {
    return HintList::NoPreference();
  }
  std::vector<TopologyHint> hints;
  for (const int node : common) {
    hints.push_back({.nodes = {node}, .preferred = true});
  }
  if (hints.empty() && static_cast<std::size_t>(all.Count()) <= kMostNodes) {
    hints = SmallestSets({all.begin(), all.end()}, near_nodes);
  }
  return hints.empty() ? HintList({{.nodes = all, .preferred = true}}) : HintList(std::move(hints));
}

MergeResult MergeBesideDevices(const Machine& machine, HintsByResource hints,
                               const std::map<std::string, GivenDevice>& devices,
                               const MergeOptions& options) {
  MergeResult merged = MergeHints(machine, hints, options);
  const bool may_reject = options.policy != TopologyPolicy::kBestEffort;
  const auto is_good = [may_reject](const MergeResult& result) {
    return may_reject ? result.admit : result.merged.preferred;
  };
  std::vector<std::string> loose;
  for (const auto& [name, device] : devices) {
    if ((!device.binding || !may_reject) && hints.contains(name)) {
      loose.push_back(name);
    }
  }
  if (loose.empty() || is_good(merged)) {
    return merged;
  }
  for (const std::string& name : loose) {
    std::vector<TopologyHint> all = hints.at(name).hints();
    for (TopologyHint& hint : all) {
      hint.preferred = true;
    }
    hints[name] = HintList(std::move(all));
  }
  MergeResult near = MergeHints(machine, hints, options);
  if (is_good(near)) {
    return near;
  }
  for (const std::string& name : loose) {
    hints[name] = HintList::NoPreference();
  }
  MergeResult without = MergeHints(machine, hints, options);
  if (is_good(without)) {
    without.reasons.push_back(fmt::format(
        "{}: left out, because no NUMA node near it can serve the rest", fmt::join(loose, ", ")));
    return without;
  }
  return may_reject ? without : merged;
}

}  // namespace qrm::placement
