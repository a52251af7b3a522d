// Where on the machine one more container that a rule binds has room, and the refusal where it has
// none.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"
#include "plugins/memory/books.h"
#include "plugins/memory/state.h"
#include "plugins/rules/sharing.h"
#include "topology/machine.h"
#include "topology/node_memory.h"

namespace qrm::memory {

/// What the machine has for one container that is to be bound.
struct Room {
  rules::Tenant tenant;
  NumaMask barred;  ///< nodes whose tenants do not tolerate it, or it them
  Books books;
};

/// What a rule's container needs.
struct Need {
  rules::NumaSpan span = rules::NumaSpan::kOne;
  std::vector<MemoryKind> kinds;  ///< as BindingRule's
  MemoryBytes bytes;
};

/// Where a container could be.
struct Spot {
  NumaMask nodes;     ///< that its memory is on
  TopologyHint hint;  ///< these, or the nodes with CPUs beside them, where its kind is wished
};

Room FindRoom(const View& view, const rules::Tenant& tenant);

/// What a container that needs `need` holds on `nodes`: the same of each for an even split, else
/// all of it anywhere within them. Ordinary memory is among it, be it nothing.
std::vector<MemoryBlock> BlocksOn(const NumaMask& nodes, const Need& need);

/// The nodes of `fitting` as spots: themselves, or, for a rule of `kinds`, beside CPUs. One node
/// that is as near to several is a spot beside each, since strict policies take hints of one node
/// only.
std::vector<Spot> SpotsOn(const Machine& machine, const std::vector<MemoryKind>& kinds,
                          const TopologyHint& fitting);

/// The spots that could hold `need`, those of each kind of memory in turn: the narrowest first,
/// among equals the closest; preferred are those as narrow as the nodes' allocatable amounts allow,
/// of the first kind with room. None when nothing fits. Cost: for each kind that of ClosestMasks
/// for each width up to the last one worth offering, and for each mask a question to the books.
std::vector<Spot> FittingSpots(const Machine& machine, const Room& room, const Need& need);

/// The hints of `spots` in their order, each set of nodes once.
std::vector<TopologyHint> HintsOf(const std::vector<Spot>& spots);

/// kResourceExhausted: what each node has for `request`, or who bars it there. `within` are the
/// nodes that were wished, none for any; `kinds` as BindingRule's.
Status NoRoom(const View& view, const ContainerRequest& request, const Room& room,
              const NumaMask& within, const std::vector<MemoryKind>& kinds);

/// The nodes of `machine` whose memory is of one of `kinds`; all when there are none.
NumaMask NodesOfKinds(const Machine& machine, const std::vector<MemoryKind>& kinds);

/// "hbm or dram".
std::string TextOf(const std::vector<MemoryKind>& kinds);

}  // namespace qrm::memory
