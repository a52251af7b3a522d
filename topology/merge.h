// Merges all plugins' topology hints into one decision, without enumerating their product.
#pragma once

#include <string>
#include <vector>

#include "api/hint.h"
#include "api/status.h"
#include "topology/machine.h"

namespace qrm {

/// When a container is admitted. Source: Kubernetes topology manager policies; numeric: Katalyst.
enum class TopologyPolicy { kNone, kBestEffort, kRestricted, kSingleNumaNode, kNumeric };

/// Whether each container or the whole pod gets one hint.
enum class TopologyScope { kContainer, kPod };

struct MergeOptions {
  TopologyPolicy policy = TopologyPolicy::kBestEffort;
  bool prefer_closest_numa_nodes = false;
  /// Policy numeric: the resources whose masks must nest.
  std::vector<std::string> align_resources = {"cpu", "memory"};
};

/// "none", "best-effort", "restricted", "single-numa-node", "numeric". Errors: kInvalidArgument
/// naming them.
StatusOr<TopologyPolicy> ParseTopologyPolicy(std::string_view text);
std::string_view ToString(TopologyPolicy policy);

/// What the merge decided, and why.
struct MergeResult {
  bool admit = true;
  /// One hint per resource that was asked; all the same but for policy numeric. Empty `nodes`: no
  /// affinity.
  std::map<std::string, TopologyHint> hints;
  /// Which resource's hints excluded what, one sentence each, in the order of the resources' names;
  /// never empty on a rejection.
  std::vector<std::string> reasons;
};

/// Merges `hints` on `machine` by `options`.
/// Cost: O(resources x reachable masks x hints), never their product. Source: Kubernetes 1.36
/// topology manager.
MergeResult MergeHints(const Machine& machine, const HintsByResource& hints,
                       const MergeOptions& options);

}  // namespace qrm
