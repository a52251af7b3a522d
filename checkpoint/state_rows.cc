// Reads and writes the rows of checkpoint.db: one for each container, and no more than changed.
#include "checkpoint/state_rows.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "checkpoint/record_codec.h"

namespace qrm::checkpoint {
namespace {

constexpr int32_t kApplicationId = 0x51524d43;  // "QRMC"

/// The first version. A released step is never edited: later versions append their own, as columns
/// behind the former ones and tables beside them, so that the release before can read what it
/// knows.
///
/// `sum` is the row's own checksum: SQLite finds damaged pages, not damaged values. `record` is a
/// qrm.state.v1.Record. No index keeps containers apart, since it would be another page to write:
/// the reader finds two rows of one.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE container(
  id INTEGER NOT NULL PRIMARY KEY, pod TEXT NOT NULL, name TEXT NOT NULL, record BLOB NOT NULL,
  sum INTEGER NOT NULL);
CREATE TABLE pending_removal(
  pod TEXT NOT NULL, resource TEXT NOT NULL,
  sum INTEGER NOT NULL, PRIMARY KEY(pod, resource)) WITHOUT ROWID;
CREATE TABLE plugin_value(
  plugin TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
)sql";

/// A checksum over kinds and contents. Source: FNV-1a, 64 bits, words instead of bytes.
class RowSum {
 public:
  /// All summed columns have texts or bytes; a damaged one may have another kind.
  void Add(const SqliteValue& value) {
    AddWord(static_cast<uint64_t>(value.kind()));
    std::string_view text = value.text();
    AddWord(text.size());
    for (; text.size() >= sizeof(uint64_t); text.remove_prefix(sizeof(uint64_t))) {
      uint64_t word = 0;
      std::memcpy(&word, text.data(), sizeof word);
      AddWord(word);
    }
    uint64_t tail = 0;
    if (!text.empty()) {  // an empty view may have no address
      std::memcpy(&tail, text.data(), text.size());
    }
    AddWord(tail);
  }
  int64_t value() const { return static_cast<int64_t>(hash_); }

 private:
  void AddWord(uint64_t word) {
    constexpr uint64_t kPrime = 0x100000001b3;
    hash_ = (hash_ ^ word) * kPrime;
    hash_ ^= hash_ >> 32;  // a multiplication carries upward only
  }

  uint64_t hash_ = 0xcbf29ce484222325;
};

/// Runs `statement` with `values`, their checksum, and then `rest`. Errors: as
/// SqliteStatement::Run.
Status RunSummed(SqliteStatement& statement, SqliteStatement::Values values,
                 SqliteStatement::Values rest = {}) {
  RowSum sum;
  std::vector<SqliteValue> row;
  row.reserve(values.size() + 1 + rest.size());
  for (const SqliteValue& value : values) {
    sum.Add(value);
    row.push_back(value);
  }
  row.emplace_back(sum.value());
  row.insert(row.end(), rest.begin(), rest.end());
  return statement.Run(row);
}

Status Untrusted(std::string_view table, std::string_view why) {
  return Errorf(StatusCode::kDataLoss,
                "cannot trust table {}: {}; move the database aside and restart", table, why);
}

/// A walk over one table. It is on a checked row, or at the end.
class Cursor {
 public:
  /// `sql` selects the row's columns and then their sum, at `sum_column`.
  static StatusOr<Cursor> Open(SqliteDb& db, std::string_view table, int sum_column,
                               std::string_view sql) {
    QRM_ASSIGN_OR_RETURN(SqliteStatement rows, db.Prepare(sql));
    Cursor cursor(std::move(rows), table, sum_column);
    QRM_RETURN_IF_ERROR(cursor.Next());
    return cursor;
  }

  bool at_end() const { return at_end_; }
  std::string_view Bytes(int column) const { return rows_.Text(column); }
  std::string Text(int column) const { return std::string(rows_.Text(column)); }

  Status Next() {
    QRM_ASSIGN_OR_RETURN(const bool more, rows_.Step());
    at_end_ = !more;
    if (at_end_) {
      return OkStatus();
    }
    RowSum sum;
    for (int column = 0; column < sum_column_; ++column) {
      sum.Add(rows_.Value(column));
    }
    return sum.value() == rows_.Integer(sum_column_)
               ? OkStatus()
               : Untrusted(table_, "a row does not match its checksum");
  }

 private:
  Cursor(SqliteStatement rows, std::string_view table, int sum_column)
      : rows_(std::move(rows)), table_(table), sum_column_(sum_column) {}

  SqliteStatement rows_;
  std::string_view table_;
  int sum_column_;
  bool at_end_ = false;
};

struct Row {
  SharedText name;
  StoredRecord stored;

  std::tuple<const SharedText&, const SharedText&> key() const { return {stored.pod.uid, name}; }
};

StatusOr<std::vector<Row>> ReadRows(SqliteDb& db, SharedParts& parts) {
  QRM_ASSIGN_OR_RETURN(Cursor cursor, Cursor::Open(db, "container", 3,
                                                   "SELECT pod, name, record, sum FROM container"));
  std::vector<Row> rows;
  while (!cursor.at_end()) {
    QRM_ASSIGN_OR_RETURN(StoredRecord stored, DecodeRecord(cursor.Bytes(2)));
    stored.pod.uid = cursor.Text(0);
    SharedText name = cursor.Text(1);
    parts.Share(stored.pod);
    parts.Share(name);
    parts.Share(stored.container);
    rows.push_back({.name = std::move(name), .stored = std::move(stored)});
    QRM_RETURN_IF_ERROR(cursor.Next());
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.key() < b.key(); });
  const auto twice = std::adjacent_find(
      rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.key() == b.key(); });
  return twice == rows.end()
             ? StatusOr<std::vector<Row>>(std::move(rows))
             : Untrusted("container", fmt::format("container {} of pod {} is there twice",
                                                  twice->name, twice->stored.pod.uid));
}

/// `rows` are in the order of their keys.
NodeState ToState(std::vector<Row> rows) {
  std::vector<std::shared_ptr<PodRecord>> pods;
  for (Row& row : rows) {
    if (pods.empty() || pods.back()->meta.uid != row.stored.pod.uid) {
      pods.push_back(std::make_shared<PodRecord>());
      pods.back()->meta = std::move(row.stored.pod);
      pods.back()->order = row.stored.pod_order;
    }
    auto& containers = pods.back()->containers;
    containers.emplace_hint(
        containers.end(), std::move(row.name),
        std::make_shared<const ContainerRecord>(std::move(row.stored.container)));
  }
  return NodeState::Restore({pods.begin(), pods.end()});
}

Status ReadPendingRemovals(SqliteDb& db, Change& change) {
  QRM_ASSIGN_OR_RETURN(
      Cursor rows, Cursor::Open(db, "pending_removal", 2,
                                "SELECT pod, resource, sum FROM pending_removal ORDER BY 1, 2"));
  while (!rows.at_end()) {
    change.add_pending_removals.emplace_back(rows.Text(0), rows.Text(1));
    QRM_RETURN_IF_ERROR(rows.Next());
  }
  return OkStatus();
}

Status ReadPluginValues(SqliteDb& db, Change& change) {
  QRM_ASSIGN_OR_RETURN(Cursor rows,
                       Cursor::Open(db, "plugin_value", 2,
                                    "SELECT plugin, value, sum FROM plugin_value ORDER BY 1"));
  while (!rows.at_end()) {
    change.put_plugin_values.emplace(rows.Text(0), rows.Text(1));
    QRM_RETURN_IF_ERROR(rows.Next());
  }
  return OkStatus();
}

/// Each row says what its pod is.
bool SaysTheSame(const PodRecord* before, const PodRecord& after) {
  return before == nullptr || (before->meta == after.meta && before->order == after.order);
}

/// The containers whose rows a step writes: those that it puts, and where their pod changed, all of
/// that.
std::set<ContainerKey> ContainersToPut(const Step& step) {
  std::set<ContainerKey> keys;
  for (const Change::PutContainer& put : step.change.put_containers) {
    const PodRecord& pod = *step.after.FindPod(put.pod.uid);
    if (SaysTheSame(step.before.FindPod(put.pod.uid), pod)) {
      keys.insert({put.pod.uid, put.container});
      continue;
    }
    for (const auto& [name, record] : pod.containers) {
      keys.insert({put.pod.uid, name});
    }
  }
  return keys;
}

/// The writer's statements, in the order of StateWriter::Statement.
constexpr const char* kStatements[] = {
    "REPLACE INTO container(pod, name, record, sum, id) VALUES(?,?,?,?,?)",
    "DELETE FROM container WHERE id=?",
    "REPLACE INTO pending_removal VALUES(?,?,?)",
    "DELETE FROM pending_removal WHERE pod=? AND resource=?",
    "REPLACE INTO plugin_value VALUES(?,?,?)",
    "DELETE FROM plugin_value WHERE plugin=?"};

}  // namespace

const SqliteSchema& CheckpointSchema() {
  static const SqliteSchema schema = {.application_id = kApplicationId, .steps = {kVersion1}};
  return schema;
}

StatusOr<NodeState> ReadState(SqliteDb& db, SharedParts& parts) {
  QRM_ASSIGN_OR_RETURN(std::vector<Row> rows, ReadRows(db, parts));
  Change rest;
  QRM_RETURN_IF_ERROR(ReadPendingRemovals(db, rest));
  QRM_RETURN_IF_ERROR(ReadPluginValues(db, rest));
  return ToState(std::move(rows)).With(std::move(rest));
}

StatusOr<StateWriter> StateWriter::Open(SqliteDb& db) {
  StateWriter writer(db);
  for (const char* const sql : kStatements) {
    QRM_ASSIGN_OR_RETURN(SqliteStatement statement, db.Prepare(sql));
    writer.statements_.push_back(std::move(statement));
  }
  QRM_ASSIGN_OR_RETURN(SqliteStatement rows, db.Prepare("SELECT id, pod, name FROM container"));
  while (true) {
    QRM_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) {
      return writer;
    }
    writer.last_id_ = std::max(writer.last_id_, rows.Integer(0));
    writer.ids_.emplace(ContainerKey{rows.Text(1), rows.Text(2)}, rows.Integer(0));
  }
}

Status StateWriter::Write(const Step& step) {
  if (step.change.Empty()) {
    return OkStatus();
  }
  NewIds new_ids;
  QRM_RETURN_IF_ERROR(db_->Transaction([&] { return WriteRows(step, new_ids); }));
  for (const auto& [key, id] : new_ids) {
    id == 0 ? void(ids_.erase(key)) : void(ids_.insert_or_assign(key, id));
  }
  return OkStatus();
}

Status StateWriter::WriteRows(const Step& step, NewIds& new_ids) {
  QRM_RETURN_IF_ERROR(DropContainers(step, new_ids));
  for (const ContainerKey& key : ContainersToPut(step)) {
    QRM_RETURN_IF_ERROR(PutContainer(step, key, new_ids));
  }
  for (const auto& [uid, resource] : step.change.done_pending_removals) {
    QRM_RETURN_IF_ERROR(statements_[kDropPending].Run({uid, resource}));
  }
  for (const auto& [uid, resource] : step.change.add_pending_removals) {
    QRM_RETURN_IF_ERROR(RunSummed(statements_[kPutPending], {uid, resource}));
  }
  for (const auto& [plugin, value] : step.change.put_plugin_values) {
    QRM_RETURN_IF_ERROR(value.empty() ? statements_[kDropPluginValue].Run({plugin})
                                      : PutPluginValue(plugin, value));
  }
  return OkStatus();
}

// A container that a step removes and puts gets a row of its own again.
Status StateWriter::DropContainers(const Step& step, NewIds& new_ids) {
  const auto drop = [&](const ContainerKey& key) -> Status {
    const auto row = ids_.find(key);
    if (row == ids_.end() || !new_ids.emplace(key, 0).second) {
      return OkStatus();
    }
    return statements_[kDropContainer].Run({row->second});
  };
  for (const std::string& uid : step.change.remove_pods) {
    for (auto row = ids_.lower_bound({uid, ""}); row != ids_.end() && row->first.pod_uid == uid;
         ++row) {
      QRM_RETURN_IF_ERROR(drop(row->first));
    }
  }
  for (const ContainerKey& key : step.change.remove_containers) {
    QRM_RETURN_IF_ERROR(drop(key));
  }
  return OkStatus();
}

Status StateWriter::PutContainer(const Step& step, const ContainerKey& key, NewIds& new_ids) {
  const auto known = ids_.find(key);
  const auto changed = new_ids.find(key);
  int64_t id = known == ids_.end() || changed != new_ids.end() ? 0 : known->second;
  if (id == 0) {
    id = ++last_id_;
    new_ids.insert_or_assign(key, id);
  }
  const PodRecord& pod = *step.after.FindPod(key.pod_uid);
  QRM_ASSIGN_OR_RETURN(const std::string record,
                       EncodeRecord(pod, *pod.containers.at(key.container)));
  return RunSummed(statements_[kPutContainer],
                   {key.pod_uid.str(), key.container.str(), SqliteValue::Blob(record)}, {id});
}

Status StateWriter::PutPluginValue(const std::string& plugin, const std::string& value) {
  if (!IsUtf8(value)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot store what the plugin of {} keeps: it is not UTF-8; correct the plugin",
                  plugin);
  }
  return RunSummed(statements_[kPutPluginValue], {plugin, value});
}

}  // namespace qrm::checkpoint
