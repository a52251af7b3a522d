// The checksum that proves a row undamaged.
#pragma once

#include <cstdint>

#include "api/base/status.h"
#include "checkpoint/sqlite/sqlite_statement.h"

namespace qrm::checkpoint {

/// A checksum over kinds and contents: SQLite finds damaged pages, not damaged values.
/// Source: FNV-1a, 64 bits, words instead of bytes where a value is a word.
class RowSum {
 public:
  void Add(const SqliteValue& value);
  int64_t value() const { return static_cast<int64_t>(hash_); }

 private:
  void AddWord(uint64_t word);

  uint64_t hash_ = 0xcbf29ce484222325;
};

/// Runs `statement` with `values`, their checksum, and then `rest`. Errors: as
/// SqliteStatement::Run.
Status RunSummed(SqliteStatement& statement, SqliteStatement::Values values,
                 SqliteStatement::Values rest = {});

}  // namespace qrm::checkpoint
