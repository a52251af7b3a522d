// The store on its disk, or waiting for one.
#include "checkpoint/store.h"

#include <optional>
#include <utility>

#include "api/log.h"
#include "checkpoint/schema.h"
#include "checkpoint/state_copy.h"
#include "checkpoint/state_reader.h"
#include "checkpoint/state_writer.h"

namespace qrm::checkpoint {
namespace {

constexpr const char* kFileName = "/checkpoint.db";

/// A database and the writer on it; the writer's statements go before the database does.
struct Disk {
  std::unique_ptr<SqliteDb> db;
  StateWriter writer;
};

class SqliteStore final : public Store {
 public:
  SqliteStore(std::string path, SqliteOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}

  /// Takes the disk's state as the node's.
  StatusOr<NodeState> Start(std::vector<std::string>& repairs) {
    NodeState state;
    QRM_ASSIGN_OR_RETURN(disk_, OpenDisk(state, repairs));
    return state;
  }

  /// Works without a disk until there is one: the node's state is `state`.
  void StartWithoutDisk(NodeState state) { waiting_ = std::move(state); }

  Status Commit(const Change& change) override {
    if (!disk_.has_value()) {
      QRM_RETURN_IF_ERROR(ReturnToDisk());
    }
    return disk_->writer.Write(change);
  }

 private:
  StatusOr<Disk> OpenDisk(NodeState& state, std::vector<std::string>& repairs) {
    const auto load = [&](SqliteDb& db) -> Status {
      QRM_ASSIGN_OR_RETURN(state, ReadState(db));
      return OkStatus();
    };
    QRM_ASSIGN_OR_RETURN(SqliteDb opened,
                         OpenOrBeginAnew(path_, CheckpointSchema(), options_, load, repairs));
    auto db = std::make_unique<SqliteDb>(std::move(opened));
    QRM_ASSIGN_OR_RETURN(StateWriter writer, StateWriter::Open(*db));
    return Disk{.db = std::move(db), .writer = std::move(writer)};
  }

  /// Opens the disk late. What it holds is the node's state or makes room for it.
  Status ReturnToDisk() {
    NodeState found;
    std::vector<std::string> repairs;
    QRM_ASSIGN_OR_RETURN(Disk disk, OpenDisk(found, repairs));
    if (!(found == waiting_)) {
      QRM_ASSIGN_OR_RETURN(disk, Replace(std::move(disk), repairs));
    }
    for (const std::string& repair : repairs) {
      log::Warning("checkpoint repaired", {{"repair", repair}});
    }
    log::Info("checkpoint is on disk again", {{"path", path_}});
    disk_ = std::move(disk);
    waiting_ = NodeState();
    return OkStatus();
  }

  StatusOr<Disk> Replace(Disk outdated, std::vector<std::string>& repairs) {
    {
      const Disk closed = std::move(outdated);
    }
    QRM_ASSIGN_OR_RETURN(const std::string aside, MoveAside(path_));
    repairs.push_back(
        fmt::format("found in {} another state than the node's: moved to {}, a new one is begun",
                    path_, aside));
    NodeState empty;
    QRM_ASSIGN_OR_RETURN(Disk disk, OpenDisk(empty, repairs));
    QRM_RETURN_IF_ERROR(disk.writer.Write(waiting_.AsChange()));
    return disk;
  }

  const std::string path_;
  const SqliteOptions options_;
  std::optional<Disk> disk_;
  NodeState waiting_;
};

}  // namespace

OpenedStore OpenSqliteStore(const std::string& directory, const SqliteOptions& options) {
  OpenedStore opened;
  auto store = std::make_unique<SqliteStore>(directory + kFileName, options);
  StatusOr<NodeState> state = store->Start(opened.repairs);
  if (!state.ok()) {
    opened.repairs.push_back(fmt::format(
        "{}: nothing new is admitted until then; each try looks again", MessageOf(state.status())));
    state = ReadStateFromCopy(directory + kFileName);
    store->StartWithoutDisk(state.ok() ? *state : NodeState());
  }
  opened.state = state.ok() ? *std::move(state) : NodeState();
  opened.store = std::move(store);
  return opened;
}

StatusOr<NodeState> InspectSqliteStore(const std::string& directory) {
  QRM_ASSIGN_OR_RETURN(SqliteDb db,
                       SqliteDb::OpenToRead(directory + kFileName, CheckpointSchema()));
  QRM_RETURN_IF_ERROR(db.Execute("BEGIN"));  // one view, whatever qrmd commits meanwhile
  return ReadState(db);
}

}  // namespace qrm::checkpoint
