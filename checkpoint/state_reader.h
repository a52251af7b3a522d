// Reads the state that checkpoint.db holds.
#pragma once

#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "checkpoint/sqlite/sqlite_db.h"

namespace qrm::checkpoint {

/// Reads every row. Errors: kDataLoss for a row that is not as it was written; the disk's.
/// Cost: about 5 us per container.
StatusOr<NodeState> ReadState(SqliteDb& db);

}  // namespace qrm::checkpoint
