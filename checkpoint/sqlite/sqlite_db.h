// One SQLite database that survives crashes: durable transactions, self-description, and errors
// that say what to do. The checkpoint and the plugins' own states use it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "checkpoint/sqlite/sqlite_statement.h"

struct sqlite3;

namespace qrm::checkpoint {

/// What a database file is expected to be.
struct SqliteSchema {
  /// The file header's application id, which identifies our files; never 0.
  int32_t application_id = 0;
  /// Step i brings schema version i to i + 1; a new database runs them all. A released step is
  /// never edited, and a later one only adds, so that the release before can read what it knows.
  std::vector<std::string> steps;
};

/// How a database is opened.
struct SqliteOptions {
  std::chrono::milliseconds busy_timeout{1000};  ///< waiting for another process's transaction
  /// The integrity check of Open ends after this long with what it has seen until then.
  std::chrono::milliseconds check_budget{300};
  std::string vfs;  ///< name of a registered SQLite VFS; empty for the machine's disk
  /// The log is folded into the database when it has so many pages: what is lost with a log stays
  /// little, and a transaction that folds it takes some milliseconds longer.
  int log_pages = 256;
};

/// Source: SQLite, journal_mode=WAL with synchronous=FULL. Threads: one at a time.
class SqliteDb {
 public:
  /// Opens `path`, brings its schema up to date and checks its integrity. A missing database is
  /// made, with its directory (0700): it appears whole under its name or not at all.
  /// Errors: kDataLoss when the file is damaged, empty, of another program or no file at all
  /// (MoveAside then makes room); kUnimplemented when it is sound but of a newer schema, and for
  /// the release that wrote it to open; kResourceExhausted for a full disk;
  /// kFailedPrecondition for a missing permission or a read-only disk; kUnavailable when another
  /// process holds it.
  static StatusOr<SqliteDb> Open(const std::string& path, const SqliteSchema& schema,
                                 const SqliteOptions& options = {});

  /// What a reader does with a newer schema than its own, whose tables may have more columns.
  enum class Newer { kRefuse, kRead };
  /// Opens an existing database to be read beside its owner: no schema step, no log of ours, and
  /// the integrity check takes the time it needs. Errors: as Open's, and kNotFound.
  static StatusOr<SqliteDb> OpenToRead(const std::string& path, const SqliteSchema& schema,
                                       Newer newer = Newer::kRefuse);

  StatusOr<SqliteStatement> Prepare(std::string_view sql);
  /// Runs one or more statements without parameters.
  Status Execute(const std::string& sql);

  /// What a transaction that returned OK survives. One for kKilled costs no sync: a loss of power
  /// may take it back, with all later ones that are for it too, and takes nothing else along. The
  /// next one for kPowerLoss secures it.
  enum class Survives { kKilled, kPowerLoss };
  /// Runs `body` in one transaction, durable when OK is returned; an error, of `body` or of the
  /// disk, leaves the database as before, and a later transaction may succeed.
  /// Errors: `body`'s; kResourceExhausted for a full disk, kFailedPrecondition for a read-only
  /// one, kDataLoss for a damaged file, kUnavailable when another process holds the database or
  /// the device failed.
  /// Cost: one fdatasync; every `log_pages` the log is folded into the database (two more).
  /// Source: SQLite, PRAGMA synchronous, NORMAL and FULL in WAL mode.
  Status Transaction(const std::function<Status()>& body, Survives survives = Survives::kPowerLoss);

  /// Whether the database and its log still are the files under their names: what is written to a
  /// deleted file is lost with the process. Cost: two stat calls.
  bool IsInPlace() const;

  /// The log is not folded into the database when it is closed: for one that turned out damaged, so
  /// that both are kept as they were found.
  void LeaveLog();

  const std::string& path() const { return *path_; }
  /// What Open found odd but harmless, one sentence each.
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
  Status StartLog(int log_pages);
  Status CheckIdentity(const SqliteSchema& schema, Newer newer);
  Status CheckVersion(int64_t version, int64_t known, Newer newer);
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
  /// What is around a transaction, prepared by the first one.
  struct Frame {
    SqliteStatement begin, commit;
  };
  std::optional<Frame> frame_;  // ends before the database
  Survives survives_ = Survives::kPowerLoss;
  std::vector<std::string> notes_;
  FileId database_id_;
  FileId log_id_;
};

/// Opens `path` and runs `load` on it. When either finds kDataLoss, the file is moved aside, a new
/// one is begun and loaded, and `repairs` gets a sentence. Errors: Open's and `load`'s others.
StatusOr<SqliteDb> OpenOrBeginAnew(const std::string& path, const SqliteSchema& schema,
                                   const SqliteOptions& options,
                                   const std::function<Status(SqliteDb&)>& load,
                                   std::vector<std::string>& repairs);

}  // namespace qrm::checkpoint
