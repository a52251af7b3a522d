// The steps of MemoryAssignment: what bytes move where.
#pragma once

#include <map>
#include <string>

#include "api/base/status.h"
#include "topology/memory_assignment.h"
#include "topology/memory_state.h"

namespace qrm {

/// The sum of one amount of `type` over the nodes of `mask`.
/// Units: bytes. Cost: O(nodes). Source: ours.
uint64_t Sum(const std::map<int, NodeMemory>& nodes, const NumaMask& mask, const std::string& type,
             uint64_t MemoryAmounts::* amount);

/// What ended init containers of `pod` left on exactly these nodes, under kubelet's rules.
/// Units: bytes. Cost: O(log). Source: Kubernetes 1.36, getPodReusableMemory.
uint64_t StaticReusable(const MemoryState& state, const std::string& pod, const NumaMask& nodes,
                        const std::string& type);

/// What the ended init containers of `request` hold on `nodes`, by their parts.
/// Units: bytes. Cost: O(blocks x nodes). Source: ours.
uint64_t PartsReusable(const MemoryState& state, const MemoryRequest& request,
                       const NumaMask& nodes, const std::string& type);

/// Frees up to `bytes` of what is held on `mask`, in ascending order of nodes.
/// Units: bytes. Cost: O(nodes). Source: Kubernetes 1.36, RemoveContainer.
void GiveBack(const NumaMask& mask, const std::string& type, uint64_t bytes,
              std::map<int, NodeMemory>& nodes);

/// Counts one block less on each node of `mask`; a node without any is its own group again.
/// Cost: O(nodes). Source: Kubernetes 1.36, RemoveContainer.
void UncountAssignment(const NumaMask& mask, std::map<int, NodeMemory>& nodes);

/// Notes what an init container leaves, or another container uses up.
/// Cost: O(log). Source: Kubernetes 1.36, updatePodReusableMemory.
void UpdateStaticReusable(const MemoryRequest& request, const MemoryBlock& block,
                          MemoryState& state);

/// `state` with blocks for `request` on `nodes`, which have room.
/// Cost: O(types x nodes). Source: Kubernetes 1.36, static policy, Allocate.
MemoryState AllocateStatic(MemoryState state, const MemoryRequest& request, const NumaMask& nodes);

/// `nodes`, all free, with the blocks of `state` taken.
/// Errors: kFailedPrecondition for a block on a node or of a type that there is not.
/// Cost: O(blocks x nodes). Source: Kubernetes 1.36, validateState.
StatusOr<std::map<int, NodeMemory>> StaticUsage(std::map<int, NodeMemory> nodes,
                                                const MemoryState& state);

/// As AllocateStatic, with the parts that each node gives. Cost: O(types x nodes). Source: ours.
MemoryState AllocatePerNode(MemoryState state, const MemoryRequest& request, const NumaMask& nodes);

/// `nodes`, all free, with every block's parts taken as far as they still fit.
/// Cost: O(blocks x nodes). Source: ours.
std::map<int, NodeMemory> PerNodeUsage(std::map<int, NodeMemory> nodes, const MemoryState& state);

}  // namespace qrm
