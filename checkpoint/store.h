// Keeps the node's promises on disk so that a crash at any instruction leaves a readable state.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/status.h"
#include "checkpoint/node_state.h"

namespace qrm::checkpoint {

/// The durable side of NodeState: one transaction per change, in the order they were committed.
///
/// Threads: one at a time; the manager calls it from the state loop only.
/// Cost:    one fdatasync per Commit, whatever the number of records.
class Store {
 public:
  virtual ~Store() = default;

  /// Makes `change` durable; once it returns OK, the change survives power loss.
  /// Errors: kResourceExhausted for a full disk, kFailedPrecondition for a read-only one; the disk
  /// then holds the state before `change`, and a later Commit may succeed.
  virtual Status Commit(const Change& change) = 0;
};

/// An open store and what was in it.
struct OpenedStore {
  std::unique_ptr<Store> store;
  NodeState state;
  /// What was damaged or foreign and where it was moved, one sentence each; the state then starts
  /// empty.
  std::vector<std::string> repairs;
};

/// Opens `<directory>/checkpoint.db`, making both when missing. A damaged, foreign or newer
/// database is moved aside under a name with the time and a new one is begun: never a refusal to
/// start. When the disk allows no database at all, the store works in memory, says so in `repairs`,
/// and every Commit tries the disk again. Source: SQLite, journal_mode=WAL with synchronous=FULL.
OpenedStore OpenSqliteStore(const std::string& directory);

}  // namespace qrm::checkpoint
