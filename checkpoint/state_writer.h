// Writes changes as rows of checkpoint.db.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "checkpoint/sqlite/sqlite_db.h"

namespace qrm::checkpoint {

/// A change, and the states that it leads from and to.
struct Step {
  const Change& change;
  const NodeState& before;
  const NodeState& after;
};

/// Writes changes into an open database; it must outlive the writer. Threads: one at a time.
class StateWriter {
 public:
  /// `found` is what the database holds.
  static StatusOr<StateWriter> Open(SqliteDb& db, const NodeState& found);

  /// One transaction. Errors: kInvalidArgument for a value that cannot be stored (text that is not
  /// UTF-8, a number that is not finite); else as SqliteDb::Transaction. The database is as before.
  Status Write(const Step& step);

 private:
  /// Prepared once: a commit costs its disk write, not its parsing.
  struct Statements {
    SqliteStatement put_container, drop_container;
    SqliteStatement put_pending, drop_pending;
    SqliteStatement put_plugin_value, drop_plugin_value;
  };
  /// The rows of containers: the writer knows where each is, so that no index has to.
  struct Rows {
    std::map<ContainerKey, int64_t> ids;
    int64_t last = 0;
  };
  /// What a transaction makes of the rows: 0 for one that goes.
  using NewIds = std::map<ContainerKey, int64_t>;

  StateWriter(SqliteDb& db, Statements statements, Rows rows);
  static StatusOr<Statements> PrepareAll(SqliteDb& db);
  static StatusOr<Rows> FindRows(SqliteDb& db, const NodeState& found);
  Status WriteRows(const Step& step, NewIds& new_ids);
  Status DropContainers(const Step& step, NewIds& new_ids);
  Status PutContainers(const Step& step, NewIds& new_ids);
  Status PutContainer(const Step& step, const ContainerKey& key, NewIds& new_ids);
  Status PutRow(const Step& step, const ContainerKey& key, int64_t id);
  Status PutPluginValue(const std::string& plugin, const std::string& value);

  SqliteDb* db_;
  Statements statements_;
  Rows rows_;
};

}  // namespace qrm::checkpoint
