// Where on the machine one more container that a rule binds has room, and the refusal where it has
// none.
#pragma once

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

/// What the machine has for one container that is to be bound.
struct Room {
  placement::Tenant tenant;
  NumaMask barred;  ///< nodes whose tenants do not tolerate it, or it them
  Books books;
};

/// What a rule's container needs.
struct Need {
  placement::NumaSpan span = placement::NumaSpan::kOne;
  MemoryBytes bytes;
};

Room FindRoom(const View& view, const placement::Tenant& tenant);

/// What a container that needs `need` holds on `nodes`: the same of each for an even split, else
/// all of it anywhere within them. Ordinary memory is among it, be it nothing.
std::vector<MemoryBlock> BlocksOn(const NumaMask& nodes, const Need& need);

/// The masks that could hold `need`, the narrowest first, among equals the closest; preferred are
/// those as narrow as the nodes' allocatable amounts allow. None when nothing fits.
/// Cost: that of ClosestMasks for each width up to the last one worth offering, and for each mask
/// a question to the books.
std::vector<TopologyHint> FittingMasks(const Machine& machine, const Room& room, const Need& need);

/// kResourceExhausted: what each node has for `request`, or who bars it there. `within` are the
/// nodes that were wished; none for any.
Status NoRoom(const View& view, const ContainerRequest& request, const Room& room,
              const NumaMask& within);

}  // namespace qrm::memory
