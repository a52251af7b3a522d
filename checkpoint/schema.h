// The tables of checkpoint.db, and the steps that bring an older schema up to date.
#pragma once

#include "checkpoint/sqlite/sqlite_db.h"

namespace qrm::checkpoint {

/// One row holds all that is known of a container, its pod included, and rows stand in the order in
/// which they came: an admission changes one page, whatever the node holds. `qrmctl checkpoint`
/// shows what rows say.
const SqliteSchema& CheckpointSchema();

}  // namespace qrm::checkpoint
