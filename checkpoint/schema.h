// The tables of checkpoint.db, and the steps that bring an older schema up to date.
#pragma once

#include "checkpoint/sqlite/sqlite_db.h"

namespace qrm::checkpoint {

/// Rows are columns of plain values, and JSON only for maps, so that `sqlite3 checkpoint.db` shows
/// what a container has; protobuf would hide it, and one document per pod would have to be parsed
/// whole at start. Tables are clustered by their keys: what a commit touches lies together.
const SqliteSchema& CheckpointSchema();

}  // namespace qrm::checkpoint
