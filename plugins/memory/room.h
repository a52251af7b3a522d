// The NUMA nodes with room for another container bound by a rule, and the error if there are none.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"
#include "plugins/memory/books.h"
#include "plugins/memory/state.h"
#include "plugins/placement/sharing.h"
#include "topology/machine.h"
#include "topology/node_memory.h"

namespace qrm::memory {

/// The memory of the machine for one container that is to be bound.
struct Room {
  placement::Tenant tenant;
  NumaMask barred;  ///< nodes whose tenants do not tolerate it, or that it does not tolerate
  Books books;
};

/// What a container of a rule needs.
struct Need {
  placement::NumaSpan span = placement::NumaSpan::kOne;
  std::vector<MemoryKind> kinds;  ///< as BindingRule's
  MemoryBytes bytes;
};

/// Where a container can be.
struct Spot {
  NumaMask nodes;     ///< that its memory is on
  TopologyHint hint;  ///< these nodes, or the nodes with CPUs near them if kinds are set
};

Room FindRoom(const View& view, const placement::Tenant& tenant);

/// The memory of a container with `need` on `nodes`: the same on each for an even split, else all
/// of it anywhere within them. Ordinary memory is included, even if it is zero.
std::vector<MemoryBlock> BlocksOn(const NumaMask& nodes, const Need& need);

/// The nodes of `fitting` as spots: the nodes themselves or, for a rule with `kinds`, near CPUs. A
/// node that is as near to several nodes with CPUs is one spot for each, since strict policies only
/// accept hints of one node.
std::vector<Spot> SpotsOn(const Machine& machine, const std::vector<MemoryKind>& kinds,
                          const TopologyHint& fitting);

/// The spots with room for `need`, by kind of memory: the narrowest first, among equals the
/// closest. Preferred are those as narrow as the nodes' allocatable amounts allow, of the first
/// kind with room. None when nothing fits. Cost: for each kind that of ClosestMasks for each width
/// up to the last useful one, and for each mask a question to the books.
std::vector<Spot> FittingSpots(const Machine& machine, const Room& room, const Need& need);

/// The hints of `spots` in their order, without duplicates.
std::vector<TopologyHint> HintsOf(const std::vector<Spot>& spots);

/// kResourceExhausted with the room of each node for `request`, or the role that excludes it.
/// `within`: the requested nodes, none for any; `kinds` as in BindingRule.
Status NoRoom(const View& view, const ContainerRequest& request, const Room& room,
              const NumaMask& within, const std::vector<MemoryKind>& kinds);

/// The nodes of `machine` whose memory is of one of `kinds`; all nodes if `kinds` is empty.
NumaMask NodesOfKinds(const Machine& machine, const std::vector<MemoryKind>& kinds);

/// "hbm or dram".
std::string TextOf(const std::vector<MemoryKind>& kinds);

}  // namespace qrm::memory
