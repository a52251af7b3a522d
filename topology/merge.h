// Merges all plugins' topology hints into one decision, without enumerating their product.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "topology/machine.h"

namespace qrm {

/// When a container is admitted. Source: Kubernetes 1.36, topology manager policies; numeric:
/// Katalyst, policy_numeric.
enum class TopologyPolicy { kNone, kBestEffort, kRestricted, kSingleNumaNode, kNumeric };

/// Whether each container or the whole pod gets one hint.
/// Source: Kubernetes 1.36, topology manager scopes.
enum class TopologyScope { kContainer, kPod };

/// How to merge. Source: Kubernetes 1.36, topology manager policies and their options.
struct MergeOptions {
  TopologyPolicy policy = TopologyPolicy::kBestEffort;
  bool prefer_closest_numa_nodes = false;
  /// Policy numeric: the resources whose masks must nest.
  std::vector<std::string> align_resources = {"cpu", "memory"};
};

/// "none", "best-effort", "restricted", "single-numa-node", "numeric". Errors: kInvalidArgument
/// naming them. Cost: O(length). Source: kubelet's --topology-manager-policy.
StatusOr<TopologyPolicy> ParseTopologyPolicy(std::string_view text);
/// The word that ParseTopologyPolicy reads. Cost: O(1).
std::string_view ToString(TopologyPolicy policy);

/// "container", "pod". Errors: kInvalidArgument naming them. Cost: O(length).
/// Source: kubelet's --topology-manager-scope.
StatusOr<TopologyScope> ParseTopologyScope(std::string_view text);
/// The word that ParseTopologyScope reads. Cost: O(1).
std::string_view ToString(TopologyScope scope);

/// What the merge decided, and why. Units: the kernel's node numbers.
struct MergeResult {
  bool admit = true;
  /// What all resources share. Policy numeric: the nodes of the aligned resources.
  TopologyHint merged;
  /// One hint per requested resource; all the same except with policy numeric. Empty `nodes`: no
  /// affinity.
  std::map<std::string, TopologyHint> hints;
  /// Which resource's hints excluded what, one sentence each, in the order of the resources' names;
  /// never empty on a rejection.
  std::vector<std::string> reasons;
};

/// Merges `hints` on `machine` by `options`. Nodes that the machine does not have are ignored.
///
/// None, best-effort, restricted and single-numa-node give exactly kubelet's result, on any number
/// of nodes, as long as hints overlap in at most 65,536 different ways (always so up to 16 nodes);
/// beyond, the best mask among those met, and a reason says so.
///
/// Numeric gives each resource one of its hints such that the masks of the resources to align are
/// equal and at least one of those hints is preferred, and all masks nest. Among those: most
/// preferred hints of the other resources, then the narrowest widest mask, then the most preferred
/// hints of the aligned resources, then the narrowest masks in all, then the smallest numbers in
/// the order of the resources' names. A hint without affinity is of width 0 and
/// nests with every mask; a preferred one also aligns with every mask.
///
/// Threads: any. Units: node numbers are the kernel's.
/// Cost:    O(hints log hints) when the resources prefer a mask in common, else
///          O(resources x reachable masks x hints); never their product. Numeric: per aligned mask
///          O(comparable masks squared x 2^other resources).
/// Source:  Kubernetes 1.36 topology manager; numeric: Katalyst, policy_numeric.
MergeResult MergeHints(const Machine& machine, const HintsByResource& hints,
                       const MergeOptions& options);

}  // namespace qrm
