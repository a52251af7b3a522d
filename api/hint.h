// Topology hints: which NUMA nodes a plugin can serve a request from.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "api/id_set.h"

namespace qrm {

/// One way to serve a request. Empty `nodes` means any node: no affinity, not an impossible one.
struct TopologyHint {
  NumaMask nodes;
  bool preferred = false;

  bool operator==(const TopologyHint&) const = default;
};

/// "0-1 preferred", "0 not preferred", "any node preferred".
std::string ToString(const TopologyHint& hint);

/// What a plugin answers for one resource. Source: resourceplugin.v1alpha1, where an absent list,
/// an empty list and a list of hints are three different answers.
class HintList {
 public:
  /// The plugin has no NUMA preference; the resource constrains nothing.
  static HintList NoPreference() { return HintList(); }
  /// No NUMA node can serve the request; strict policies reject it.
  static HintList Impossible() { return HintList(std::vector<TopologyHint>{}); }

  HintList() = default;
  /// The hints themselves; an empty vector is Impossible().
  HintList(std::vector<TopologyHint>  // NOLINT(google-explicit-constructor)
               hints)                 // plugins return plain vectors
      : no_preference_(false), hints_(std::move(hints)) {}

  bool IsNoPreference() const { return no_preference_; }
  bool IsImpossible() const { return !no_preference_ && hints_.empty(); }
  const std::vector<TopologyHint>& hints() const { return hints_; }

  bool operator==(const HintList&) const = default;

 private:
  bool no_preference_ = true;
  std::vector<TopologyHint> hints_;
};

/// The answers of all plugins that were asked, by resource name.
using HintsByResource = std::map<std::string, HintList>;

}  // namespace qrm
