// The tables of checkpoint.db, and the steps that bring an older schema up to date.
#pragma once

#include "checkpoint/sqlite/sqlite_db.h"

namespace qrm::checkpoint {

/// One row holds all that is known of a container, its pod included. Rows are in the order of their
/// insertion: an admission changes one page, however many containers the node has. `qrmctl
/// checkpoint` shows the rows.
const SqliteSchema& CheckpointSchema();

}  // namespace qrm::checkpoint
