// Binds and reads values as views, so that SQLite copies only what it has to keep.
#include "checkpoint/sqlite/sqlite_statement.h"

#include <sqlite3.h>

#include "checkpoint/sqlite/sqlite_error.h"

namespace qrm::checkpoint {

void SqliteStatement::Finalize::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

SqliteStatement::SqliteStatement(sqlite3* db, const std::string* path, sqlite3_stmt* statement)
    : db_(db), path_(path), statement_(statement) {}

Status SqliteStatement::Bind(std::span<const SqliteValue> values) {
  sqlite3_reset(statement_.get());
  int index = 0;
  for (const SqliteValue& value : values) {
    ++index;
    int code = SQLITE_OK;
    switch (value.kind()) {
      case SqliteValue::Kind::kNull:
        code = sqlite3_bind_null(statement_.get(), index);
        break;
      case SqliteValue::Kind::kInteger:
        code = sqlite3_bind_int64(statement_.get(), index, value.integer());
        break;
      case SqliteValue::Kind::kText:
        // A view of no text has no address; SQLite would read that as NULL.
        code = sqlite3_bind_text64(statement_.get(), index,
                                   value.text().empty() ? "" : value.text().data(),
                                   value.text().size(), SQLITE_STATIC, SQLITE_UTF8);
        break;
      case SqliteValue::Kind::kBlob:
        code = sqlite3_bind_blob64(statement_.get(), index,
                                   value.text().empty() ? "" : value.text().data(),
                                   value.text().size(), SQLITE_STATIC);
        break;
    }
    if (code != SQLITE_OK) {
      return SqliteError(db_, code, "bind a value for", *path_);
    }
  }
  return OkStatus();
}

StatusOr<bool> SqliteStatement::Step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) {
    return true;
  }
  if (code == SQLITE_DONE) {
    sqlite3_reset(statement_.get());
    return false;
  }
  const bool reads = sqlite3_column_count(statement_.get()) > 0;
  Status error = SqliteError(db_, code, reads ? "read" : "write", *path_);
  sqlite3_reset(statement_.get());
  return error;
}

Status SqliteStatement::Run(std::span<const SqliteValue> values) {
  QRM_RETURN_IF_ERROR(Bind(values));
  while (true) {
    QRM_ASSIGN_OR_RETURN(const bool more, Step());
    if (!more) {
      return OkStatus();
    }
  }
}

SqliteValue SqliteStatement::Value(int column) const {
  sqlite3_stmt* statement = statement_.get();
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_TEXT:
      return std::string_view(reinterpret_cast<const char*>(sqlite3_column_text(statement, column)),
                              static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
    case SQLITE_BLOB: {
      const void* bytes = sqlite3_column_blob(statement, column);
      return SqliteValue::Blob(
          {static_cast<const char*>(bytes),
           bytes == nullptr ? 0
                            : static_cast<std::size_t>(sqlite3_column_bytes(statement, column))});
    }
    default:
      return nullptr;
  }
}

}  // namespace qrm::checkpoint
