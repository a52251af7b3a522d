// Reads the rows of containers and joins them to pods.
#include "checkpoint/state_reader.h"

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "api/base/errorf.h"
#include "checkpoint/record_codec.h"
#include "checkpoint/row_sum.h"

namespace qrm::checkpoint {
namespace {

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

}  // namespace

StatusOr<NodeState> ReadState(SqliteDb& db, SharedParts& parts) {
  QRM_ASSIGN_OR_RETURN(std::vector<Row> rows, ReadRows(db, parts));
  Change rest;
  QRM_RETURN_IF_ERROR(ReadPendingRemovals(db, rest));
  QRM_RETURN_IF_ERROR(ReadPluginValues(db, rest));
  return ToState(std::move(rows)).With(std::move(rest));
}

}  // namespace qrm::checkpoint
