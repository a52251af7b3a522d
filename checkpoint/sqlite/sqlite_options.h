// How a database is opened.
#pragma once

#include <chrono>
#include <string>

namespace qrm::checkpoint {

struct SqliteOptions {
  std::chrono::milliseconds busy_timeout{1000};  ///< waiting for another process's transaction
  /// The integrity check of Open ends after this long with what it has seen until then.
  std::chrono::milliseconds check_budget{300};
  std::string vfs;  ///< name of a registered SQLite VFS; empty for the machine's disk
  /// The log is folded into the database when it has so many pages: what is lost with a log stays
  /// little, and a transaction that folds it takes some milliseconds longer.
  int log_pages = 256;
};

}  // namespace qrm::checkpoint
