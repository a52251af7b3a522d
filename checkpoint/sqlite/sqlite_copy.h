// Reads a database that its disk does not allow to be opened in place.
#pragma once

#include <functional>
#include <string>

#include "api/base/status.h"
#include "checkpoint/sqlite/sqlite_db.h"

namespace qrm::checkpoint {

/// Runs `load` on a copy in memory (/dev/shm, else the temporary directory) of the database at
/// `path`, since even reading a write-ahead log writes beside it. Errors: kNotFound without a file;
/// kFailedPrecondition without a right to read it; kDataLoss; the disks'; `load`'s.
Status ReadCopy(const std::string& path, const SqliteSchema& schema,
                const std::function<Status(SqliteDb&)>& load);

}  // namespace qrm::checkpoint
