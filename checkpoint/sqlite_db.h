// One SQLite database that survives crashes: durable transactions, self-description, and errors
// that say what to do. The checkpoint and the plugins' own states stand on it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace qrm::checkpoint {

/// A value of a column or for a `?`. Text and bytes are only referred to: one to bind must live
/// until the statement has run, one of a row is valid until the next call on the statement.
class SqliteValue {
 public:
  enum class Kind { kNull, kInteger, kReal, kText, kBlob };

  // Conversions from the types SQLite stores keep statement calls readable.
  // NOLINTBEGIN(google-explicit-constructor)
  SqliteValue(std::nullptr_t) {}
  SqliteValue(std::string_view text) : kind_(Kind::kText), text_(text) {}
  SqliteValue(const std::string& text) : SqliteValue(std::string_view(text)) {}
  SqliteValue(const char* text) : SqliteValue(std::string_view(text)) {}
  SqliteValue(int64_t number) : kind_(Kind::kInteger), integer_(number) {}
  SqliteValue(int number) : SqliteValue(int64_t{number}) {}
  SqliteValue(bool flag) : SqliteValue(int64_t{flag ? 1 : 0}) {}
  SqliteValue(double number) : kind_(Kind::kReal), real_(number) {}
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
  double real() const { return real_; }
  std::string_view text() const { return text_; }  ///< or the bytes

 private:
  Kind kind_ = Kind::kNull;
  int64_t integer_ = 0;
  double real_ = 0;
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

  /// Starts anew with `values`; Step then walks the rows.
  Status Bind(std::span<const SqliteValue> values);
  Status Bind(Values values) { return Bind(std::span(values.begin(), values.size())); }
  /// True with the next row, false after the last one; the statement is then ready to start anew.
  StatusOr<bool> Step();

  /// Columns of the current row, from 0; another kind than asked for reads as zero or empty.
  SqliteValue Value(int column) const;
  std::string_view Text(int column) const { return Value(column).text(); }
  std::string_view Blob(int column) const { return Value(column).text(); }
  bool IsNull(int column) const { return Value(column).kind() == SqliteValue::Kind::kNull; }
  int64_t Integer(int column) const { return Value(column).integer(); }
  double Real(int column) const { return Value(column).real(); }

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

/// What a database file is expected to be.
struct SqliteSchema {
  /// The file header's application id, which tells our files from others; never 0.
  int32_t application_id = 0;
  /// Step i brings schema version i to i + 1; a new database runs them all. A released step is
  /// never edited.
  std::vector<std::string> steps;
};

/// How it is opened.
struct SqliteOptions {
  std::chrono::milliseconds busy_timeout{1000};  ///< waiting for another process's transaction
  /// The integrity check of Open ends after this long with what it has seen until then.
  std::chrono::milliseconds check_budget{300};
  std::string vfs;  ///< name of a registered SQLite VFS; empty for the machine's disk
};

/// Source: SQLite, journal_mode=WAL with synchronous=FULL. Threads: one at a time.
class SqliteDb {
 public:
  /// Opens `path`, brings its schema up to date and checks its integrity. A missing database is
  /// made, with its directory (0700): it appears whole under its name or not at all.
  /// Errors: kDataLoss when the file is damaged, empty, of another program, of a newer schema, or
  /// no file at all (MoveAside then makes room); kResourceExhausted for a full disk;
  /// kFailedPrecondition for a missing permission or a read-only disk; kUnavailable when another
  /// process holds it.
  static StatusOr<SqliteDb> Open(const std::string& path, const SqliteSchema& schema,
                                 const SqliteOptions& options = {});

  /// Opens an existing database to be read beside its owner: no schema step, no log of ours, and
  /// the integrity check takes the time it needs. Errors: as Open's, and kNotFound.
  static StatusOr<SqliteDb> OpenToRead(const std::string& path, const SqliteSchema& schema);

  StatusOr<SqliteStatement> Prepare(std::string_view sql);
  /// Runs one or more statements without parameters.
  Status Execute(const std::string& sql);

  /// Runs `body` in one transaction, durable when OK is returned; an error, of `body` or of the
  /// disk, leaves the database as before, and a later transaction may succeed.
  /// Errors: `body`'s; kResourceExhausted for a full disk, kFailedPrecondition for a read-only
  /// one, kDataLoss for a damaged file, kUnavailable when another process holds the database or
  /// the device failed.
  /// Cost: one fdatasync; every 1,000 pages the log is folded into the database (two more).
  Status Transaction(const std::function<Status()>& body);

  /// Whether the database and its log still are the files under their names: what is written to a
  /// deleted file is lost with the process. Cost: two stat calls.
  bool IsInPlace() const;

  const std::string& path() const { return *path_; }
  /// What Open found odd but could live with, one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  struct Close {
    void operator()(sqlite3* db) const;
  };
  SqliteDb(std::unique_ptr<std::string> path, sqlite3* db);
  static StatusOr<SqliteDb> Connect(const std::string& path, const SqliteOptions& options);
  static StatusOr<SqliteDb> ConnectWith(int flags, const std::string& path,
                                        const SqliteOptions& options);
  StatusOr<bool> UsesLog();
  Status StartLog();
  Status CheckIdentity(const SqliteSchema& schema);
  Status CheckIntegrity(std::chrono::milliseconds budget);
  Status Migrate(const SqliteSchema& schema);
  StatusOr<int64_t> Pragma(const std::string& name);
  static Status Create(const std::string& path, const SqliteSchema& schema,
                       const SqliteOptions& options);

  /// Which files the names meant when they were opened.
  struct FileId {
    uint64_t device = 0;
    uint64_t inode = 0;
    bool operator==(const FileId&) const = default;
  };
  static FileId Identify(const std::string& path);

  std::unique_ptr<std::string> path_;  // statements refer to it, also after a move
  std::unique_ptr<sqlite3, Close> db_;
  std::vector<std::string> notes_;
  FileId database_id_;
  FileId log_id_;
};

/// Renames what stands at `path`, with its -wal and -shm, to `<path>.aside-<UTC time>` and returns
/// that name; nothing is deleted. Errors: kFailedPrecondition when the directory does not allow it.
StatusOr<std::string> MoveAside(const std::string& path);

/// Opens `path` and runs `load` on it. When either finds kDataLoss, the file is moved aside, a new
/// one is begun and loaded, and `repairs` gets a sentence. Errors: Open's and `load`'s others.
StatusOr<SqliteDb> OpenOrBeginAnew(const std::string& path, const SqliteSchema& schema,
                                   const SqliteOptions& options,
                                   const std::function<Status(SqliteDb&)>& load,
                                   std::vector<std::string>& repairs);

}  // namespace qrm::checkpoint
