// Turns SQLite's and the kernel's error numbers into sentences that name cause and remedy.
#pragma once

#include <string>
#include <string_view>

#include "api/base/status.h"

struct sqlite3;

namespace qrm::checkpoint {

/// `cannot <verb> <path>: <cause>; <remedy>` for the last error of `db`, which returned `code` (an
/// extended result code). Errors: kResourceExhausted for a full disk or quota, kFailedPrecondition
/// for a missing
/// permission or directory or a read-only disk, kDataLoss for a damaged file, kUnavailable for a
/// lock or a failing device, kInternal for the rest. Source: sqlite.org/rescode.html.
Status SqliteError(sqlite3* db, int code, std::string_view verb, const std::string& path);

/// The same for a system call that set `error_number`.
Status SystemError(int error_number, std::string_view verb, const std::string& path);

}  // namespace qrm::checkpoint
