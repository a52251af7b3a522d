// The rows of checkpoint.db: their schema, and the node's state from and to them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "checkpoint/shared_parts.h"
#include "checkpoint/sqlite/sqlite_db.h"

namespace qrm::checkpoint {

/// One row holds all that is known of a container, its pod included. Rows are in the order of their
/// insertion: an admission changes one page, however many containers the node has. `qrmctl
/// checkpoint` shows the rows.
const SqliteSchema& CheckpointSchema();

/// Reads every row; what records have in common is found with `parts`. Errors: kDataLoss for a row
/// that is not as it was written; the disk's. Cost: about 5 us per container.
StatusOr<NodeState> ReadState(SqliteDb& db, SharedParts& parts);

/// A change, and the states that it leads from and to.
struct Step {
  const Change& change;
  const NodeState& before;
  const NodeState& after;
};

/// Writes changes into an open database; it must outlive the writer. Threads: one at a time.
class StateWriter {
 public:
  static StatusOr<StateWriter> Open(SqliteDb& db);

  /// One transaction. Errors: kInvalidArgument for a value that cannot be stored (text that is not
  /// UTF-8, a number that is not finite); else as SqliteDb::Transaction. The database is as before.
  Status Write(const Step& step);

 private:
  enum Statement {
    kPutContainer,
    kDropContainer,
    kPutPending,
    kDropPending,
    kPutPluginValue,
    kDropPluginValue
  };
  /// What a transaction makes of the rows: 0 for one that goes.
  using NewIds = std::map<ContainerKey, int64_t>;

  explicit StateWriter(SqliteDb& db) : db_(&db) {}
  Status WriteRows(const Step& step, NewIds& new_ids);
  Status DropContainers(const Step& step, NewIds& new_ids);
  Status PutContainer(const Step& step, const ContainerKey& key, NewIds& new_ids);
  Status PutPluginValue(const std::string& plugin, const std::string& value);

  SqliteDb* db_;
  /// By Statement; prepared once, so that a commit costs its disk write and not its parsing.
  std::vector<SqliteStatement> statements_;
  /// The writer knows the row of each container, so that no index has to.
  std::map<ContainerKey, int64_t> ids_;
  int64_t last_id_ = 0;
};

}  // namespace qrm::checkpoint
