// Checks a database file before it is trusted, and runs transactions.
#include "checkpoint/sqlite/sqlite_db.h"

#include <array>
#include <cerrno>
#include <fstream>
#include <utility>

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "checkpoint/sqlite/durable_file.h"
#include "checkpoint/sqlite/log_check.h"
#include "checkpoint/sqlite/sqlite_error.h"

namespace qrm::checkpoint {
namespace {

/// The log is cut back to this size when a reader made it grow; normally it stays below.
constexpr int kLogLimitBytes = 4 << 20;

/// What a connection keeps of the database in memory; a commit touches a few pages, the kernel has
/// the rest.
constexpr int kCacheKibibytes = 64;

/// SQLite asks every so many virtual instructions whether the check may go on.
constexpr int kInstructionsPerLook = 10000;

/// For a check that a person waits for.
constexpr std::chrono::hours kNoBudget(1);

int PastDeadline(void* deadline) {
  return std::chrono::steady_clock::now() >=
                 *static_cast<const std::chrono::steady_clock::time_point*>(deadline)
             ? 1
             : 0;
}

/// SQLite quotes what it found, whatever that is.
Status Damaged(const std::string& path, std::string_view what) {
  return Errorf(StatusCode::kDataLoss, "cannot use {}: {}; move it aside and restart", path,
                Escaped(what));
}

/// How each of SQLite's databases begins. Source: sqlite.org/fileformat.html, "Magic Header
/// String".
constexpr std::string_view kDatabaseMagic("SQLite format 3\0", 16);

/// What begins otherwise is not for SQLite to open: with a log beside it, it would write that over
/// another program's file.
Status ExpectDatabase(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return SystemError(errno, "open", path);
  }
  std::array<char, kDatabaseMagic.size()> begin{};
  file.read(begin.data(), begin.size());
  return std::string_view(begin.data(), begin.size()) == kDatabaseMagic
             ? OkStatus()
             : Damaged(path, "it is not a database");
}

/// Checks the file before SQLite opens it: true when there is a database to open.
StatusOr<bool> LookAt(const std::string& path) {
  struct stat file = {};
  if (::stat(path.c_str(), &file) == 0) {
    if (!S_ISREG(file.st_mode)) {
      return Damaged(path, "it is not a file");
    }
    if (file.st_size == 0) {
      return Damaged(path, "it is empty");
    }
    QRM_RETURN_IF_ERROR(ExpectDatabase(path));
    return true;
  }
  if (errno != ENOENT) {
    return SystemError(errno, "open", path);
  }
  if (::stat((path + "-wal").c_str(), &file) == 0 && file.st_size > 0) {
    return Damaged(path, "it is gone although its log is there");
  }
  return false;
}

/// Finds what SQLite would not, which reads a log up to the first bad frame and drops the rest.
/// Returns what is odd but does no harm.
StatusOr<std::vector<std::string>> LookAtLog(const std::string& path) {
  QRM_ASSIGN_OR_RETURN(const LogCondition condition, CheckLog(path));
  if (condition == LogCondition::kInterrupted) {
    return Damaged(path, "its log is damaged in the middle");
  }
  if (condition == LogCondition::kSound) {
    return std::vector<std::string>();
  }
  // A power loss during a restart of the log leaves the same; then nothing is lost.
  QRM_ASSIGN_OR_RETURN(const std::string aside, MoveAside(path + "-wal"));
  return std::vector<std::string>{
      fmt::format("found no sound header in {}-wal: moved to {}; the database is used as it is, "
                  "the last changes may be lost",
                  path, aside)};
}

bool Exists(const std::string& path) {
  struct stat file = {};
  return ::stat(path.c_str(), &file) == 0;
}

/// Statements that say the schema's version in the header and, for releases that do not know that
/// version, in a row beside it.
std::string SetVersion(int64_t version) {
  return fmt::format(
      "CREATE TABLE IF NOT EXISTS schema_version(version INTEGER NOT NULL);\n"
      "DELETE FROM schema_version;\n"
      "INSERT INTO schema_version VALUES({0});\n"
      "PRAGMA user_version={0}",
      version);
}

StatusOr<int64_t> ReadVersionRow(SqliteDb& db) {
  QRM_ASSIGN_OR_RETURN(SqliteStatement row, db.Prepare("SELECT max(version) FROM schema_version"));
  QRM_ASSIGN_OR_RETURN(const bool any, row.Step());
  return any ? row.Integer(0) : 0;
}

}  // namespace

void SqliteDb::Close::operator()(sqlite3* db) const {
  sqlite3_close_v2(db);
}

SqliteDb::SqliteDb(std::unique_ptr<std::string> path, sqlite3* db)
    : path_(std::move(path)), db_(db) {}

StatusOr<SqliteDb> SqliteDb::Open(const std::string& path, const SqliteSchema& schema,
                                  const SqliteOptions& options) {
  QRM_ASSIGN_OR_RETURN(const bool exists, LookAt(path));
  if (!exists) {
    QRM_RETURN_IF_ERROR(Create(path, schema, options));
  }
  const bool has_log = Exists(path + "-wal");
  QRM_ASSIGN_OR_RETURN(std::vector<std::string> notes, LookAtLog(path));

  QRM_ASSIGN_OR_RETURN(SqliteDb db, Connect(path, options));
  QRM_RETURN_IF_ERROR(db.CheckIdentity(schema, Newer::kRefuse));
  QRM_ASSIGN_OR_RETURN(const bool was_in_use, db.UsesLog());
  if (was_in_use && !has_log) {
    notes.push_back(fmt::format(
        "found {} without its log {}-wal: its last changes are lost unless a sqlite3 shell closed "
        "it; the database is used as it is",
        path, path));
  }
  QRM_RETURN_IF_ERROR(db.CheckIntegrity(options.check_budget));
  QRM_RETURN_IF_ERROR(db.StartLog(options.log_pages));
  QRM_RETURN_IF_ERROR(db.Migrate(schema));
  db.notes_ = std::move(notes);
  db.database_id_ = Identify(path);
  db.log_id_ = Identify(path + "-wal");
  return db;
}

// Asks for nothing but the number: with multigrain timestamps (Linux 6.13), who reads a file's
// times makes the next write note a new one, and the next sync write the inode too.
SqliteDb::FileId SqliteDb::Identify(const std::string& path) {
  struct statx file = {};
  return ::statx(AT_FDCWD, path.c_str(), 0, STATX_INO, &file) == 0
             ? FileId{.device = ::makedev(file.stx_dev_major, file.stx_dev_minor),
                      .inode = file.stx_ino}
             : FileId();
}

bool SqliteDb::IsInPlace() const {
  return Identify(path()) == database_id_ && Identify(path() + "-wal") == log_id_;
}

Status SqliteDb::Create(const std::string& path, const SqliteSchema& schema,
                        const SqliteOptions& options) {
  QRM_RETURN_IF_ERROR(MakeDurableDirectory(DirectoryOf(path)));
  const std::string unfinished = path + ".new";
  for (const char* suffix : {"", "-journal", "-wal", "-shm"}) {
    QRM_RETURN_IF_ERROR(RemoveFile(unfinished + suffix));  // of a start that was interrupted
  }
  QRM_RETURN_IF_ERROR(MakePrivateFile(unfinished));
  {
    QRM_ASSIGN_OR_RETURN(SqliteDb db, Connect(unfinished, options));
    QRM_RETURN_IF_ERROR(db.Transaction([&]() -> Status {
      return db.Execute(fmt::format("PRAGMA application_id={}", schema.application_id));
    }));
    QRM_RETURN_IF_ERROR(db.Migrate(schema));
  }
  return RenameDurably(unfinished, path);
}

StatusOr<SqliteDb> SqliteDb::OpenToRead(const std::string& path, const SqliteSchema& schema,
                                        Newer newer) {
  QRM_ASSIGN_OR_RETURN(const bool exists, LookAt(path));
  if (!exists) {
    return Errorf(StatusCode::kNotFound, "cannot read {}: there is no such file; correct the path",
                  path);
  }
  QRM_ASSIGN_OR_RETURN(SqliteDb db, ConnectWith(SQLITE_OPEN_READONLY, path, {}));
  QRM_RETURN_IF_ERROR(db.CheckIdentity(schema, newer));
  QRM_RETURN_IF_ERROR(db.CheckIntegrity(kNoBudget));
  return db;
}

StatusOr<SqliteDb> SqliteDb::Connect(const std::string& path, const SqliteOptions& options) {
  QRM_ASSIGN_OR_RETURN(SqliteDb db, ConnectWith(SQLITE_OPEN_READWRITE, path, options));
  if (sqlite3_db_readonly(db.db_.get(), "main") != 0) {
    return SystemError(EROFS, "write to", path);
  }
  return db;
}

StatusOr<SqliteDb> SqliteDb::ConnectWith(int flags, const std::string& path,
                                         const SqliteOptions& options) {
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &raw, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
                      options.vfs.empty() ? nullptr : options.vfs.c_str());
  SqliteDb db(std::make_unique<std::string>(path), raw);  // closes also what failed to open
  if (code != SQLITE_OK) {
    return SqliteError(raw, code, "open", path);
  }
  sqlite3_busy_timeout(raw, static_cast<int>(options.busy_timeout.count()));
  // Until the file is known to be ours, closing it must not fold its log into it and delete that.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  // A damaged or foreign file must neither run code of its own nor be trusted about cell sizes.
  QRM_RETURN_IF_ERROR(
      db.Execute(fmt::format("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; "
                             "PRAGMA synchronous=FULL; PRAGMA cache_size=-{}",
                             kCacheKibibytes)));
  return db;
}

StatusOr<bool> SqliteDb::UsesLog() {
  QRM_ASSIGN_OR_RETURN(SqliteStatement mode, Prepare("PRAGMA journal_mode"));
  QRM_ASSIGN_OR_RETURN(const bool row, mode.Step());
  return row && mode.Text(0) == "wal";
}

Status SqliteDb::StartLog(int log_pages) {
  QRM_RETURN_IF_ERROR(
      Execute(fmt::format("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint={}; "
                          "PRAGMA journal_size_limit={}",
                          log_pages, kLogLimitBytes)));
  QRM_ASSIGN_OR_RETURN(const bool uses_log, UsesLog());
  if (!uses_log) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot keep a write-ahead log for {}: its file system has no shared memory; "
                  "put the state on a local disk",
                  path());
  }
  // The log stays when we close, so that a missing one always means that someone took it.
  int keep = 1;
  sqlite3_file_control(db_.get(), "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
  sqlite3_db_config(db_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, nullptr);
  return OkStatus();
}

void SqliteDb::LeaveLog() {
  sqlite3_db_config(db_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

Status SqliteDb::CheckIdentity(const SqliteSchema& schema, Newer newer) {
  QRM_ASSIGN_OR_RETURN(const int64_t application_id, Pragma("application_id"));
  if (application_id != schema.application_id) {
    return Damaged(path(), fmt::format("it belongs to another program (application id {}, not {})",
                                       application_id, schema.application_id));
  }
  QRM_ASSIGN_OR_RETURN(const int64_t version, Pragma("user_version"));
  return CheckVersion(version, static_cast<int64_t>(schema.steps.size()), newer);
}

// A newer database says its version twice: where only the header does, the header is damaged.
Status SqliteDb::CheckVersion(int64_t version, int64_t known, Newer newer) {
  if (version >= 1 && version <= known) {
    return OkStatus();
  }
  const std::string what =
      fmt::format("its schema is version {}, this program knows 1 to {}", version, known);
  const auto said = ReadVersionRow(*this);
  if (version < 1 || !said.ok() || *said != version) {
    return Damaged(path(), what);
  }
  return newer == Newer::kRead
             ? OkStatus()
             : Errorf(StatusCode::kUnimplemented,
                      "cannot use {}: {}; install the release that wrote it", path(), what);
}

Status SqliteDb::CheckIntegrity(std::chrono::milliseconds budget) {
  auto deadline = std::chrono::steady_clock::now() + budget;
  QRM_ASSIGN_OR_RETURN(SqliteStatement check, Prepare("PRAGMA quick_check(1)"));
  sqlite3_progress_handler(db_.get(), kInstructionsPerLook, PastDeadline, &deadline);
  const int code = sqlite3_step(check.statement_.get());
  sqlite3_progress_handler(db_.get(), 0, nullptr, nullptr);
  if (code == SQLITE_INTERRUPT) {
    return OkStatus();  // no damage within the budget; reading the rows will look at the rest
  }
  if (code != SQLITE_ROW) {
    return SqliteError(db_.get(), code, "check", path());
  }
  return check.Text(0) == "ok" ? OkStatus() : Damaged(path(), std::string(check.Text(0)));
}

Status SqliteDb::Migrate(const SqliteSchema& schema) {
  QRM_ASSIGN_OR_RETURN(const int64_t version, Pragma("user_version"));
  const auto wanted = static_cast<int64_t>(schema.steps.size());
  if (version == wanted) {
    return OkStatus();
  }
  std::string sql;
  for (int64_t step = version; step < wanted; ++step) {
    sql += schema.steps[static_cast<std::size_t>(step)] + ";\n";
  }
  sql += SetVersion(wanted);
  return Transaction([&] { return Execute(sql); });
}

StatusOr<int64_t> SqliteDb::Pragma(const std::string& name) {
  QRM_ASSIGN_OR_RETURN(SqliteStatement pragma, Prepare("PRAGMA " + name));
  QRM_ASSIGN_OR_RETURN(const bool row, pragma.Step());
  return row ? pragma.Integer(0) : 0;
}

StatusOr<SqliteStatement> SqliteDb::Prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(db_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code == SQLITE_ERROR) {
    return Damaged(path(), sqlite3_errmsg(db_.get()));  // our statements fit the schema
  }
  if (code != SQLITE_OK) {
    return SqliteError(db_.get(), code, "read", path());
  }
  return SqliteStatement(db_.get(), path_.get(), statement);
}

Status SqliteDb::Execute(const std::string& sql) {
  const int code = sqlite3_exec(db_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? OkStatus() : SqliteError(db_.get(), code, "write", path());
}

Status SqliteDb::Transaction(const std::function<Status()>& body, Survives survives) {
  if (survives != survives_) {
    QRM_RETURN_IF_ERROR(Execute(survives == Survives::kPowerLoss ? "PRAGMA synchronous=FULL"
                                                                 : "PRAGMA synchronous=NORMAL"));
    survives_ = survives;
  }
  if (!frame_.has_value()) {
    QRM_ASSIGN_OR_RETURN(SqliteStatement begin, Prepare("BEGIN IMMEDIATE"));
    QRM_ASSIGN_OR_RETURN(SqliteStatement commit, Prepare("COMMIT"));
    frame_.emplace(Frame{.begin = std::move(begin), .commit = std::move(commit)});
  }
  QRM_RETURN_IF_ERROR(frame_->begin.Run());
  Status done = body();
  if (done.ok()) {
    done = frame_->commit.Run();
  }
  if (!done.ok() && sqlite3_get_autocommit(db_.get()) == 0) {
    sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr);  // cannot fail in WAL mode
  }
  return done;
}

StatusOr<SqliteDb> OpenOrBeginAnew(const std::string& path, const SqliteSchema& schema,
                                   const SqliteOptions& options,
                                   const std::function<Status(SqliteDb&)>& load,
                                   std::vector<std::string>& repairs) {
  const auto open_and_load = [&]() -> StatusOr<SqliteDb> {
    QRM_ASSIGN_OR_RETURN(SqliteDb db, SqliteDb::Open(path, schema, options));
    if (Status loaded = load(db); !loaded.ok()) {
      db.LeaveLog();
      return loaded;
    }
    return db;
  };
  StatusOr<SqliteDb> opened = open_and_load();
  // A damaged file can also fail in ways that would be bugs with a sound one: a missing table, a
  // length beyond memory.
  if (opened.status().code() == StatusCode::kDataLoss ||
      opened.status().code() == StatusCode::kInternal) {
    QRM_ASSIGN_OR_RETURN(const std::string aside, MoveAside(path));
    repairs.push_back(
        fmt::format("{}: moved to {}, a new one is begun", MessageOf(opened.status()), aside));
    opened = open_and_load();
  }
  if (opened.ok()) {
    repairs.insert(repairs.end(), opened->notes().begin(), opened->notes().end());
  }
  return opened;
}

}  // namespace qrm::checkpoint
