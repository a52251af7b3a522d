// Imports and exports the peers' checkpoint file `kubelet_qrm_checkpoint`, so that a node can be
// migrated in either direction.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "checkpoint/node_state.h"

namespace qrm::checkpoint {

/// What a peer's file holds.
struct PeerCheckpoint {
  AllocationByContainer allocations;
  std::vector<std::string> skipped;  ///< entries that say nothing usable, one sentence each
};

/// Reads a peer's file after verifying its checksum. Errors:
/// kInvalidArgument when `text` is not such a file; kDataLoss with both sums when its checksum is
/// not that of its content. Source: katalyst-core, pkg/agent/orm/checkpoint: FNV-1a, 32 bits, over
/// Go's "%#v" dump of the entries as spew writes it.
StatusOr<PeerCheckpoint> ParsePeerCheckpoint(std::string_view text);

/// `allocations` as a peer's file: the same bytes for the same allocations, since entries are
/// sorted. What only we know (exclusive CPUs) is under keys that peers ignore. Errors:
/// kInvalidArgument for text that is not UTF-8 or a quantity that is not finite.
StatusOr<std::string> ToPeerCheckpoint(const AllocationByContainer& allocations);

/// All allocations of `state`, to be exported.
AllocationByContainer AllocationsOf(const NodeState& state);

/// The change that imports `allocations` into `state`. They replace the allocations of known
/// containers. Unknown containers start with their UID only; the runtime reports the rest. If no
/// allocation marks its CPUs as exclusive (peers' files never do), CPUs are exclusive that only one
/// container has, as many as its quantity.
Change ImportChange(const NodeState& state, const AllocationByContainer& allocations);

}  // namespace qrm::checkpoint
