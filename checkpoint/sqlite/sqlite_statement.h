// Prepared statements on a SQLite database, and the values that they take and return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace qrm::checkpoint {

/// A value of a column or for a `?`. Text and bytes are only referred to: one to bind must live
/// until the statement has run, one of a row is valid until the next call on the statement.
class SqliteValue {
 public:
  enum class Kind { kNull, kInteger, kText = 3, kBlob };  // checksums of rows contain the numbers

  // Conversions from the types SQLite stores keep statement calls readable.
  // NOLINTBEGIN(google-explicit-constructor)
  SqliteValue(std::nullptr_t) {}
  SqliteValue(std::string_view text) : kind_(Kind::kText), text_(text) {}
  SqliteValue(const std::string& text) : SqliteValue(std::string_view(text)) {}
  SqliteValue(const char* text) : SqliteValue(std::string_view(text)) {}
  SqliteValue(int64_t number) : kind_(Kind::kInteger), integer_(number) {}
  // NOLINTEND(google-explicit-constructor)

  /// Bytes that are not text, such as a serialized message.
  static SqliteValue Blob(std::string_view bytes) {
    SqliteValue value(bytes);
    value.kind_ = Kind::kBlob;
    return value;
  }

  Kind kind() const { return kind_; }
  /// Zero or empty unless the value is of that kind.
  int64_t integer() const { return integer_; }
  std::string_view text() const { return text_; }  ///< or the bytes

 private:
  Kind kind_ = Kind::kNull;
  int64_t integer_ = 0;
  std::string_view text_;
};

/// A prepared statement, to be run any number of times. It must not outlive its database.
/// Threads: as the database's.
class SqliteStatement {
 public:
  using Values = std::initializer_list<SqliteValue>;

  /// Runs to the end with `values` for the `?`s in order; rows are discarded. Errors: as
  /// SqliteDb::Transaction's.
  Status Run(std::span<const SqliteValue> values);
  Status Run(Values values = {}) { return Run(std::span(values.begin(), values.size())); }

  /// Restarts with `values`; Step then walks the rows.
  Status Bind(std::span<const SqliteValue> values);
  Status Bind(Values values) { return Bind(std::span(values.begin(), values.size())); }
  /// True with the next row, false after the last one; the statement can then be restarted.
  StatusOr<bool> Step();

  /// Columns of the current row, from 0; another kind than asked for reads as zero or empty.
  SqliteValue Value(int column) const;
  std::string_view Text(int column) const { return Value(column).text(); }
  std::string_view Blob(int column) const { return Value(column).text(); }
  bool IsNull(int column) const { return Value(column).kind() == SqliteValue::Kind::kNull; }
  int64_t Integer(int column) const { return Value(column).integer(); }

 private:
  friend class SqliteDb;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  SqliteStatement(sqlite3* db, const std::string* path, sqlite3_stmt* statement);

  sqlite3* db_;
  const std::string* path_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

}  // namespace qrm::checkpoint
