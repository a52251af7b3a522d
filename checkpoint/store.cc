// Implements the store, and keeps the state in memory while the disk cannot be used.
#include "checkpoint/store.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "checkpoint/shared_parts.h"
#include "checkpoint/sqlite/durable_file.h"
#include "checkpoint/sqlite/sqlite_db.h"
#include "checkpoint/sqlite/sqlite_error.h"
#include "checkpoint/state_rows.h"

namespace qrm::checkpoint {
namespace {

constexpr const char* kFileName = "/checkpoint.db";

/// More than the change of a pod is.
constexpr std::size_t kProbeBytes = std::size_t{64} << 10;

namespace fs = std::filesystem;

/// A private directory that goes with its owner.
struct RemoveDirectory {
  void operator()(const std::string* path) const {
    std::error_code ignored;
    fs::remove_all(*path, ignored);
    delete path;
  }
};
using Scratch = std::unique_ptr<const std::string, RemoveDirectory>;

StatusOr<Scratch> MakeScratch() {
  std::error_code ignored;
  for (const fs::path& parent : {fs::path("/dev/shm"), fs::temp_directory_path(ignored)}) {
    std::string name = (parent / "qrm-checkpoint.XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) {
      return Scratch(new const std::string(std::move(name)));
    }
  }
  return SystemError(errno, "make a copy in", "/dev/shm");
}

/// The state in a copy in memory (/dev/shm, else the temporary directory) of the database at `path`
/// and its log, for a disk that does not allow to open it in place: even reading a write-ahead log
/// writes beside it. Errors: kNotFound without a file; kFailedPrecondition without a right to read
/// it; kDataLoss; the disks'.
StatusOr<NodeState> ReadCopy(const std::string& path) {
  std::error_code error;
  const bool is_file = fs::is_regular_file(path, error);
  if (error && error != std::errc::no_such_file_or_directory &&
      error != std::errc::not_a_directory) {
    return SystemError(error.value(), "read", path);
  }
  if (!is_file) {
    return Errorf(StatusCode::kNotFound, "cannot read {}: there is no such file; begin with none",
                  path);
  }
  QRM_ASSIGN_OR_RETURN(const Scratch scratch, MakeScratch());
  const std::string copy = *scratch + "/copy.db";
  fs::copy_file(path, copy, error);
  if (!error && fs::exists(path + "-wal", error)) {
    fs::copy_file(path + "-wal", copy + "-wal", error);
  }
  if (error) {
    return SystemError(error.value(), "copy", path);
  }
  QRM_ASSIGN_OR_RETURN(SqliteDb db, SqliteDb::Open(copy, CheckpointSchema()));
  SharedParts parts;
  return ReadState(db, parts);
}

/// A database and the writer on it; the writer's statements go before the database does.
struct Disk {
  std::unique_ptr<SqliteDb> db;
  StateWriter writer;
};

class SqliteStore final : public Store {
 public:
  SqliteStore(std::string path, SqliteOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}

  /// Starts with the state that the disk holds.
  Status Start(std::vector<std::string>& repairs) {
    QRM_ASSIGN_OR_RETURN(disk_, OpenDisk(state_, repairs));
    on_disk_ = state_;
    repairs_ = repairs.size();
    return OkStatus();
  }

  /// Starts without a disk, with `state`, until there is one.
  void StartWithoutDisk(const NodeState& state) { state_ = on_disk_ = state; }

  /// Starts with an empty state because the disk cannot be read; its content becomes the state as
  /// soon as it opens.
  void StartWithUnreadDisk() { unread_ = true; }

  Status Commit(const Change& change) override {
    if (change.Empty()) {
      return OkStatus();
    }
    Status written = FindDisk();
    if (written.ok()) {
      written = Write(change, After(change));
    }
    if (!written.ok() && written.code() != StatusCode::kInvalidArgument) {
      refusal_ = written;
    }
    return written;
  }

  Status Remember(const Change& change) override {
    if (change.Empty() && !waits_ && disk_ != nullptr) {
      return Probe();
    }
    Status written = FindDisk();
    const NodeState next = After(change);
    if (written.ok()) {
      written = Write(change, next);
    }
    if (!written.ok() && written.code() != StatusCode::kInvalidArgument) {
      state_ = next;
      waits_ = true;
    }
    return written;
  }

  Status Try() override {
    Status tried = WriteProbe();
    if (!tried.ok()) {
      refusal_ = tried;
    }
    return tried;
  }

  Status Recall() override { return unread_ ? FindDisk() : OkStatus(); }

  const NodeState& state() const override { return state_; }
  std::size_t repairs() const override { return repairs_; }

 private:
  /// The open disk, as long as its file is the one under its name; else an error.
  Status FindDisk() {
    if (disk_ != nullptr && !disk_->db->IsInPlace()) {
      log::Warning("checkpoint was taken away", {{"path", path_}});
      ++repairs_;
      disk_.reset();
    }
    return disk_ == nullptr ? ReturnToDisk() : OkStatus();
  }

  NodeState After(Change change) {
    parts_.Share(change);
    return state_.With(std::move(change));
  }

  /// Brings the disk to `next`, which is the state after `change`.
  Status Write(const Change& change, const NodeState& next) {
    Status written = WriteStep(change, next);
    if (written.code() == StatusCode::kDataLoss) {
      QRM_RETURN_IF_ERROR(BeginAnew(MessageOf(written)));
      written = WriteStep(change, next);
    }
    if (written.ok()) {
      state_ = on_disk_ = next;
      waits_ = false;
      refusal_ = OkStatus();
    }
    return written;
  }

  /// Whether a disk that rejected a change accepts as much again. The database may have room for
  /// less within its files.
  Status Probe() {
    if (!refusal_.ok() && WriteProbe().ok()) {
      refusal_ = OkStatus();
    }
    return refusal_;
  }

  Status WriteProbe() const {
    const std::string file = path_ + ".probe";
    Status written = WriteFileDurably(file, std::string(kProbeBytes, '\0'));
    ::unlink(file.c_str());
    ::unlink((file + ".new").c_str());
    return written;
  }

  Status WriteStep(const Change& change, const NodeState& next) {
    if (!waits_) {
      return disk_->writer.Write({.change = change, .before = on_disk_, .after = next});
    }
    const Change all = next.Since(on_disk_);
    return disk_->writer.Write({.change = all, .before = on_disk_, .after = next});
  }

  StatusOr<std::unique_ptr<Disk>> OpenDisk(NodeState& found, std::vector<std::string>& repairs) {
    const auto load = [&](SqliteDb& db) -> Status {
      QRM_ASSIGN_OR_RETURN(found, ReadState(db, parts_));
      return OkStatus();
    };
    QRM_ASSIGN_OR_RETURN(SqliteDb opened,
                         OpenOrBeginAnew(path_, CheckpointSchema(), options_, load, repairs));
    auto db = std::make_unique<SqliteDb>(std::move(opened));
    QRM_ASSIGN_OR_RETURN(StateWriter writer, StateWriter::Open(*db));
    return std::make_unique<Disk>(Disk{.db = std::move(db), .writer = std::move(writer)});
  }

  /// Opens the disk later than at the start, and moves aside what is not the content expected.
  Status ReturnToDisk() {
    NodeState found;
    std::vector<std::string> repairs;
    QRM_ASSIGN_OR_RETURN(std::unique_ptr<Disk> disk, OpenDisk(found, repairs));
    for (const std::string& repair : repairs) {
      log::Warning("checkpoint repaired", {{"repair", repair}});
    }
    repairs_ += repairs.size();
    if (unread_) {
      state_ = on_disk_ = found;
      unread_ = waits_ = false;
    } else if (found == NodeState()) {
      const Change all = state_.AsChange();
      QRM_RETURN_IF_ERROR(disk->writer.Write({.change = all, .before = found, .after = state_}));
      on_disk_ = state_;
      waits_ = false;
    } else if (!(found == on_disk_)) {
      disk.reset();
      return BeginAnew(fmt::format("found in {} another state than the node's", path_));
    }
    log::Info("checkpoint is on disk again", {{"path", path_}});
    disk_ = std::move(disk);
    return OkStatus();
  }

  /// Moves the database aside, because of `why`, and writes the node's state to a new one.
  Status BeginAnew(const std::string& why) {
    disk_.reset();
    QRM_ASSIGN_OR_RETURN(const std::string aside, MoveAside(path_));
    log::Warning("checkpoint moved aside", {{"error", why}, {"to", aside}});
    ++repairs_;
    return ReturnToDisk();
  }

  const std::string path_;
  const SqliteOptions options_;
  std::unique_ptr<Disk> disk_;  // none while the disk does not allow it
  SharedParts parts_;           // of the states
  NodeState state_;
  NodeState on_disk_;    // what the disk holds, or would if it could be opened
  bool waits_ = false;   // the state has more than the disk
  Status refusal_;       // of the latest change that the disk did not take
  bool unread_ = false;  // the content of the disk is unknown
  std::size_t repairs_ = 0;
};

}  // namespace

StatusOr<OpenedStore> OpenSqliteStore(const std::string& directory) {
  return OpenSqliteStore(directory, {});
}

StatusOr<OpenedStore> OpenSqliteStore(const std::string& directory, const SqliteOptions& options) {
  OpenedStore opened;
  auto store = std::make_unique<SqliteStore>(directory + kFileName, options);
  const Status started = store->Start(opened.repairs);
  if (started.code() == StatusCode::kUnimplemented) {
    return Errorf(started.code(),
                  "{}, or stop qrmd, and go back with: qrmctl checkpoint downgrade --state-dir {}",
                  MessageOf(started), directory);
  }
  if (!started.ok()) {
    opened.repairs.push_back(fmt::format(
        "{}: nothing new is admitted until then; each try looks again", MessageOf(started)));
    const StatusOr<NodeState> read = ReadCopy(directory + kFileName);
    if (read.status().code() == StatusCode::kFailedPrecondition) {
      store->StartWithUnreadDisk();
    } else {
      store->StartWithoutDisk(read.value_or(NodeState()));
    }
  }
  opened.state = store->state();
  opened.store = std::move(store);
  return opened;
}

namespace {

StatusOr<NodeState> Inspect(const std::string& path, SqliteDb::Newer newer) {
  QRM_ASSIGN_OR_RETURN(SqliteDb db, SqliteDb::OpenToRead(path, CheckpointSchema(), newer));
  QRM_RETURN_IF_ERROR(db.Execute("BEGIN"));  // one view, whatever qrmd commits meanwhile
  SharedParts parts;
  return ReadState(db, parts);
}

}  // namespace

StatusOr<NodeState> InspectSqliteStore(const std::string& directory) {
  return Inspect(directory + kFileName, SqliteDb::Newer::kRefuse);
}

StatusOr<std::string> DowngradeSqliteStore(const std::string& directory) {
  const std::string path = directory + kFileName;
  Status refused = Inspect(path, SqliteDb::Newer::kRefuse).status();
  if (refused.ok()) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot downgrade {}: this program can use it as it is; start qrmd", path);
  }
  if (refused.code() != StatusCode::kUnimplemented) {
    return refused;
  }
  QRM_ASSIGN_OR_RETURN(const NodeState state, Inspect(path, SqliteDb::Newer::kRead));
  QRM_ASSIGN_OR_RETURN(std::string aside, MoveAside(path));
  QRM_ASSIGN_OR_RETURN(const OpenedStore opened, OpenSqliteStore(directory));
  QRM_RETURN_IF_ERROR(Annotate(opened.store->Commit(state.AsChange()),
                               fmt::format("the newer checkpoint is kept as {}", aside)));
  return aside;
}

}  // namespace qrm::checkpoint
