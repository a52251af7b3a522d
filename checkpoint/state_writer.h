// Writes changes as rows of checkpoint.db.
#pragma once

#include <cstdint>

#include "api/base/status.h"
#include "checkpoint/node_state.h"
#include "checkpoint/sqlite/sqlite_db.h"

namespace qrm::checkpoint {

/// Writes changes into an open database; it must outlive the writer. Threads: one at a time.
class StateWriter {
 public:
  static StatusOr<StateWriter> Open(SqliteDb& db);

  /// One transaction. Errors: kInvalidArgument for a value that cannot be stored (text that is not
  /// UTF-8, a number that is not finite); else as SqliteDb::Transaction. The database is as before.
  Status Write(const Change& change);

 private:
  /// Prepared once: a commit costs its disk write, not its parsing.
  struct Statements {
    SqliteStatement put_pod, put_container, put_allocation, put_pending, put_plugin_value,
        put_trace;
    SqliteStatement drop_pod, drop_containers, drop_allocations;
    SqliteStatement drop_container, drop_container_allocations, drop_pod_if_empty, drop_pending;
    SqliteStatement drop_plugin_value;
    SqliteStatement put_class, drop_pod_classes, drop_container_classes;
  };
  /// The last numbers given out, and what else follows from the rows.
  struct Sequences {
    int64_t pod = 0;
    int64_t trace = 0;
    bool any_classes = false;  ///< there may be rows of classes: without them, nothing is dropped
  };

  StateWriter(SqliteDb& db, Statements statements, Sequences sequences);
  static StatusOr<Statements> PrepareAll(SqliteDb& db);
  static StatusOr<Sequences> LastSequences(SqliteDb& db);
  Status WriteRows(const Change& change, Sequences& sequences);
  Status RemovePod(const std::string& uid, const Sequences& sequences);
  Status RemoveContainer(const ContainerKey& key, const Sequences& sequences);
  Status PutContainer(const Change::PutContainer& put, Sequences& sequences);
  Status PutAllocation(const ContainerKey& key, const std::string& resource,
                       const ResourceAllocation& allocation, const Origin* origin);
  Status PutClasses(const ContainerKey& key, const StringMap& classes, Sequences& sequences);
  Status PutPluginValue(const std::string& plugin, const std::string& value);
  Status PutTrace(const DecisionTrace& trace, Sequences& sequences);

  SqliteDb* db_;
  Statements statements_;
  Sequences sequences_;
};

}  // namespace qrm::checkpoint
