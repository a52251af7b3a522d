// Detects whether SQLite's write-ahead log was damaged after it was written.
#pragma once

#include <string>

#include "api/base/status.h"

namespace qrm::checkpoint {

enum class LogCondition {
  kSound,       ///< none, empty, or ended by a torn transaction, as a crash leaves it
  kHeadless,    ///< no file or no sound header: SQLite would ignore all of it
  kInterrupted  ///< committed transactions follow a damaged frame: SQLite would forget them
                ///< silently
};

/// Looks at `<path>-wal`, which no process may have open. SQLite ends a log at the first frame
/// whose checksum is wrong and cannot distinguish a torn end from a damaged middle. But every
/// transaction is synced before the next one is written, so two whole transactions behind a bad
/// frame prove damage. Errors: the disk's. Cost: reads the log, 1 MiB at most as a rule. Source:
/// sqlite.org/walformat.html, "The WAL File Format".
StatusOr<LogCondition> CheckLog(const std::string& path);

}  // namespace qrm::checkpoint
