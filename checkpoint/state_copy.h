// Reading a checkpoint whose disk does not allow to open it.
#pragma once

#include <string>

#include "api/status.h"
#include "checkpoint/node_state.h"

namespace qrm::checkpoint {

/// The state that the database at `path` holds, read from a copy in memory (/dev/shm, else the
/// temporary directory), since even reading a write-ahead log writes beside it. Errors: kNotFound
/// without a file; kDataLoss; the disks'.
StatusOr<NodeState> ReadStateFromCopy(const std::string& path);

}  // namespace qrm::checkpoint
