// Keeps the node's promises on disk so that a crash at any instruction leaves a readable state.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "checkpoint/node_state.h"

namespace qrm::checkpoint {

struct SqliteOptions;

/// The durable side of NodeState: one transaction per change, in the order they were committed.
///
/// Threads: one at a time; the manager calls it from the state loop only.
/// Cost:    one fdatasync per Commit, whatever the number of records.
class Store {
 public:
  virtual ~Store() = default;

  /// Makes `change` durable; once it returns OK, the change survives power loss. An empty one costs
  /// nothing.
  /// Errors: kResourceExhausted for a full disk, kFailedPrecondition for a read-only one,
  /// kUnavailable for a failing one, kInvalidArgument for text that is not UTF-8 or a number that
  /// is not finite; the disk then holds the state before `change`, and a later Commit may succeed.
  ///
  /// A database that was damaged, replaced or deleted under the running store is moved aside if it
  /// exists, and the whole state is written again before the change.
  virtual Status Commit(const Change& change) = 0;

  /// Makes `change` part of the state in any case, and durable as soon as the disk accepts it: at
  /// the latest with the next Commit that succeeds. For changes that a crash may take back because
  /// the runtime and the plugins report them again. An empty change only tries the disk, for
  /// changes that wait or were rejected. Errors: as Commit's; the state has the change in any case
  /// except kInvalidArgument.
  virtual Status Remember(const Change& change) = 0;

  /// Whether the disk accepts writes now, by a file of its own: for changes that others see before
  /// they can be committed. Cost: two fsyncs. Errors: as Commit's.
  virtual Status Try() { return OkStatus(); }

  /// OK when the state is the disk's. If the disk could not be read at the start, the state does
  /// not contain it, and this reads it as soon as possible. Call it before a decision that depends
  /// on the absence of something in the state. Errors: the disk's.
  virtual Status Recall() { return OkStatus(); }

  /// The state with all that was committed or remembered; valid until the next call of either.
  virtual const NodeState& state() const = 0;

  /// How often the database was found damaged, foreign or taken away, at the start and since; each
  /// time has a line in the log, or in OpenedStore::repairs.
  virtual std::size_t repairs() const { return 0; }
};

/// An open store and what was in it.
struct OpenedStore {
  std::unique_ptr<Store> store;
  NodeState state;
  /// What was damaged or foreign and where it was moved, one sentence each; the state then starts
  /// empty.
  std::vector<std::string> repairs;
};

/// Opens `<directory>/checkpoint.db`, making both when missing. A damaged or foreign database is
/// moved aside under a name with the time and a new one is created: the start never fails. When the
/// disk does not allow to open one (full, read-only), `repairs` says so, the state is what could be
/// read, Commit fails with the cause, and every Commit tries the disk again. Errors: only
/// kUnimplemented, for a sound database of a newer schema, which stays unchanged: the sentence has
/// both versions and both cures. Source: SQLite, journal_mode=WAL with synchronous=FULL.
StatusOr<OpenedStore> OpenSqliteStore(const std::string& directory);
StatusOr<OpenedStore> OpenSqliteStore(const std::string& directory, const SqliteOptions& options);

/// Reads and checks the whole of `<directory>/checkpoint.db`, also while qrmd uses it, and changes
/// nothing. Errors: kNotFound without one; kDataLoss saying what is damaged; the disk's.
StatusOr<NodeState> InspectSqliteStore(const std::string& directory);

/// Writes what this program knows of `<directory>/checkpoint.db`, which has a newer schema, into a
/// new one, and keeps the former under the name that is returned. No other process may use the
/// directory.
/// Errors: kFailedPrecondition when its schema is not newer; kDataLoss when it cannot be read so;
/// the disk's. The database is as before then.
StatusOr<std::string> DowngradeSqliteStore(const std::string& directory);

}  // namespace qrm::checkpoint
