// Reads the state that checkpoint.db holds.
#pragma once

#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "checkpoint/shared_parts.h"
#include "checkpoint/sqlite/sqlite_db.h"

namespace qrm::checkpoint {

/// Reads every row; what records have in common is found with `parts`. Errors: kDataLoss for a row
/// that is not as it was written; the disk's. Cost: about 5 us per container.
StatusOr<NodeState> ReadState(SqliteDb& db, SharedParts& parts);

}  // namespace qrm::checkpoint
