// Reads pods, their containers and the containers' allocations and classes with four cursors that
// advance together in the order of the keys.
#include "checkpoint/state_reader.h"

#include <memory>
#include <utility>
#include <vector>

#include "checkpoint/column_text.h"

namespace qrm::checkpoint {
namespace {

Status Untrusted(std::string_view table, std::string_view why) {
  return Errorf(StatusCode::kDataLoss,
                "cannot trust table {}: {}; move the database aside and restart", table, why);
}

/// A walk over one table that stands on a checked row, or is at its end.
class Cursor {
 public:
  /// `sql` selects the row's columns and then their sum, at `sum_column`; then, where
  /// `more_columns` says so, as many that a later schema added, and the sum of these.
  static StatusOr<Cursor> Open(SqliteDb& db, std::string_view table, int sum_column,
                               std::string_view sql, int more_columns = 0) {
    QRM_ASSIGN_OR_RETURN(SqliteStatement rows, db.Prepare(sql));
    Cursor cursor(std::move(rows), table, sum_column, more_columns);
    QRM_RETURN_IF_ERROR(cursor.Next());
    return cursor;
  }

  bool at_end() const { return at_end_; }
  std::string_view table() const { return table_; }
  std::string_view Text(std::size_t column) const { return row_[column].text(); }
  std::string Take(std::size_t column) const { return std::string(row_[column].text()); }
  int64_t Integer(std::size_t column) const { return row_[column].integer(); }
  double Real(std::size_t column) const { return row_[column].real(); }
  /// The column after the sum: what the sum does not cover.
  int64_t Extra() const { return rows_.Integer(sum_column_ + 1); }
  /// A column that a later schema added, from 0; null in rows of before.
  SqliteValue More(int column) const { return rows_.Value(sum_column_ + 1 + column); }

  Status Next() {
    QRM_ASSIGN_OR_RETURN(const bool more, rows_.Step());
    at_end_ = !more;
    if (at_end_) {
      return OkStatus();
    }
    row_.clear();
    RowSum sum;
    for (int column = 0; column < sum_column_; ++column) {
      row_.push_back(rows_.Value(column));
      sum.Add(row_.back());
    }
    return sum.value() == rows_.Integer(sum_column_) && MoreIsSound()
               ? OkStatus()
               : Untrusted(table_, "a row does not match its checksum");
  }

 private:
  Cursor(SqliteStatement rows, std::string_view table, int sum_column, int more_columns)
      : rows_(std::move(rows)),
        table_(table),
        sum_column_(sum_column),
        more_columns_(more_columns) {}

  bool MoreIsSound() const {
    RowSum sum;
    bool any = false;
    for (int column = 0; column < more_columns_; ++column) {
      sum.Add(More(column));
      any = any || More(column).kind() != SqliteValue::Kind::kNull;
    }
    const SqliteValue kept = More(more_columns_);
    const bool of_before = kept.kind() == SqliteValue::Kind::kNull && !any;
    return more_columns_ == 0 || of_before || kept.integer() == sum.value();
  }

  SqliteStatement rows_;
  std::vector<SqliteValue> row_;  // the current one, each column fetched once
  std::string_view table_;
  int sum_column_;
  int more_columns_;
  bool at_end_ = false;
};

StatusOr<ResourceAllocation> ReadAllocation(const Cursor& row) {
  ResourceAllocation allocation = {.oci_property = row.Take(3),
                                   .value = row.Take(4),
                                   .is_node_resource = row.Integer(6) != 0,
                                   .is_scalar_resource = row.Integer(7) != 0,
                                   .quantity = row.Real(5),
                                   .exclusive = row.Integer(8) != 0};
  QRM_RETURN_IF_ERROR(FromColumn(row.Text(9), allocation.hints));
  QRM_RETURN_IF_ERROR(FromColumn(row.Text(10), allocation.envs));
  QRM_RETURN_IF_ERROR(FromColumn(row.Text(11), allocation.annotations));
  QRM_RETURN_IF_ERROR(FromColumn(row.Text(12), allocation.amount_by_node));
  QRM_RETURN_IF_ERROR(FromColumn(row.Text(13), allocation.mounts));
  QRM_RETURN_IF_ERROR(FromColumn(row.Text(14), allocation.devices));
  return allocation;
}

StatusOr<Origin> ReadOrigin(const Cursor& row) {
  Origin origin = {.plugin = std::string(row.More(0).text()),
                   .endpoint = std::string(row.More(1).text())};
  if (row.More(2).kind() != SqliteValue::Kind::kNull) {
    origin.admitted.emplace(Amounts{.quantity = row.More(2).real()});
    QRM_RETURN_IF_ERROR(FromColumn(row.More(3).text(), origin.admitted->by_node));
  }
  return origin;
}

StatusOr<ContainerRecord> ReadContainer(const Cursor& row) {
  const int64_t type = row.Integer(2);
  if (type < 0 || type > static_cast<int64_t>(ContainerType::kEphemeral)) {
    return Untrusted("container", fmt::format("there is no container type {}", type));
  }
  ContainerRecord record = {.type = static_cast<ContainerType>(type),
                            .index = static_cast<uint64_t>(row.Integer(3)),
                            .restartable_init = row.More(2).integer() != 0,
                            .request_source = row.Take(5),
                            .runtime_class = std::string(row.More(0).text()),
                            .applied_to = std::string(row.More(1).text())};
  QRM_RETURN_IF_ERROR(FromColumn(row.Text(4), record.requests));
  QRM_RETURN_IF_ERROR(FromColumn(row.Text(6), record.applied));
  return record;
}

StatusOr<PodMeta> ReadPod(const Cursor& row) {
  PodMeta pod = {.uid = row.Take(0),
                 .pod_namespace = row.Take(1),
                 .name = row.Take(2),
                 .role = row.Take(3),
                 .type = row.Take(4),
                 .qos_class = row.Take(5)};
  QRM_RETURN_IF_ERROR(FromColumn(row.Text(6), pod.labels));
  QRM_RETURN_IF_ERROR(FromColumn(row.Text(7), pod.annotations));
  return pod;
}

class PodReader {
 public:
  static StatusOr<PodReader> Open(SqliteDb& db) {
    QRM_ASSIGN_OR_RETURN(Cursor pods,
                         Cursor::Open(db, "pod", 8,
                                      "SELECT uid, namespace, name, role, type, qos_class, labels, "
                                      "annotations, sum, seq FROM pod ORDER BY uid"));
    QRM_ASSIGN_OR_RETURN(
        Cursor containers,
        Cursor::Open(db, "container", 7,
                     "SELECT pod, name, type, position, requests, request_source, applied, sum, "
                     "runtime_class, applied_to, restartable_init, more_sum FROM container "
                     "ORDER BY pod, name",
                     3));
    QRM_ASSIGN_OR_RETURN(
        Cursor allocations,
        Cursor::Open(db, "allocation", 15,
                     "SELECT pod, container, resource, oci_property, value, quantity, is_node, "
                     "is_scalar, exclusive, hints, envs, annotations, amount_by_node, mounts, "
                     "devices, sum, plugin, endpoint, admitted, admitted_by_node, more_sum "
                     "FROM allocation ORDER BY pod, container, resource",
                     4));
    QRM_ASSIGN_OR_RETURN(Cursor classes,
                         Cursor::Open(db, "class_assignment", 4,
                                      "SELECT pod, container, type, class, sum FROM "
                                      "class_assignment ORDER BY pod, container, type"));
    return PodReader(std::move(pods), std::move(containers), std::move(allocations),
                     std::move(classes));
  }

  StatusOr<std::vector<NodeState::Restored>> ReadAll() {
    std::vector<NodeState::Restored> pods;
    while (!pods_.at_end()) {
      QRM_RETURN_IF_ERROR(ReadOne(pods));
      QRM_RETURN_IF_ERROR(pods_.Next());
    }
    for (const Cursor* rest : {&containers_, &allocations_, &classes_}) {
      if (!rest->at_end()) {
        return Untrusted(rest->table(), "a row belongs to nothing");
      }
    }
    return pods;
  }

 private:
  PodReader(Cursor pods, Cursor containers, Cursor allocations, Cursor classes)
      : pods_(std::move(pods)),
        containers_(std::move(containers)),
        allocations_(std::move(allocations)),
        classes_(std::move(classes)) {}

  Status ReadOne(std::vector<NodeState::Restored>& pods) {
    auto pod = std::make_shared<PodRecord>();
    QRM_ASSIGN_OR_RETURN(pod->meta, ReadPod(pods_));
    while (!containers_.at_end() && containers_.Text(0) == pod->meta.uid) {
      QRM_ASSIGN_OR_RETURN(ContainerRecord record, ReadContainer(containers_));
      std::string name = containers_.Take(1);
      QRM_RETURN_IF_ERROR(ReadAllocations(pod->meta.uid, name, record));
      QRM_RETURN_IF_ERROR(ReadClasses(pod->meta.uid, name, record));
      QRM_RETURN_IF_ERROR(containers_.Next());
      pod->containers.emplace_hint(pod->containers.end(), std::move(name),
                                   std::make_shared<const ContainerRecord>(std::move(record)));
    }
    if (!pod->containers.empty()) {
      pods.push_back({.pod = std::move(pod), .order = pods_.Extra()});
    }
    return OkStatus();
  }

  Status ReadAllocations(const std::string& uid, const std::string& container,
                         ContainerRecord& record) {
    while (!allocations_.at_end() && allocations_.Text(0) == uid &&
           allocations_.Text(1) == container) {
      QRM_ASSIGN_OR_RETURN(ResourceAllocation allocation, ReadAllocation(allocations_));
      std::string resource = allocations_.Take(2);
      if (allocations_.More(0).kind() != SqliteValue::Kind::kNull) {
        QRM_ASSIGN_OR_RETURN(Origin origin, ReadOrigin(allocations_));
        record.origins.emplace_hint(record.origins.end(), resource, std::move(origin));
      }
      record.allocations.emplace_hint(record.allocations.end(), std::move(resource),
                                      std::move(allocation));
      QRM_RETURN_IF_ERROR(allocations_.Next());
    }
    return OkStatus();
  }

  Status ReadClasses(const std::string& uid, const std::string& container,
                     ContainerRecord& record) {
    while (!classes_.at_end() && classes_.Text(0) == uid && classes_.Text(1) == container) {
      record.classes.emplace(classes_.Take(2), classes_.Take(3));
      QRM_RETURN_IF_ERROR(classes_.Next());
    }
    return OkStatus();
  }

  Cursor pods_;
  Cursor containers_;
  Cursor allocations_;
  Cursor classes_;
};

Status ReadPendingRemovals(SqliteDb& db, Change& change) {
  QRM_ASSIGN_OR_RETURN(
      Cursor rows, Cursor::Open(db, "pending_removal", 2,
                                "SELECT pod, resource, sum FROM pending_removal ORDER BY 1, 2"));
  while (!rows.at_end()) {
    change.add_pending_removals.emplace_back(rows.Take(0), rows.Take(1));
    QRM_RETURN_IF_ERROR(rows.Next());
  }
  return OkStatus();
}

Status ReadPluginValues(SqliteDb& db, Change& change) {
  QRM_ASSIGN_OR_RETURN(Cursor rows,
                       Cursor::Open(db, "plugin_value", 2,
                                    "SELECT plugin, value, sum FROM plugin_value ORDER BY 1"));
  while (!rows.at_end()) {
    change.put_plugin_values.emplace(rows.Take(0), rows.Take(1));
    QRM_RETURN_IF_ERROR(rows.Next());
  }
  return OkStatus();
}

Status ReadTraces(SqliteDb& db, Change& change) {
  QRM_ASSIGN_OR_RETURN(
      Cursor rows, Cursor::Open(db, "trace", 8,
                                "SELECT seq, pod, container, namespace, name, time_ns, admitted, "
                                "document, sum FROM trace ORDER BY seq"));
  while (!rows.at_end()) {
    const std::chrono::nanoseconds since_epoch(rows.Integer(5));
    change.traces.push_back(
        {.key = {.pod_uid = rows.Take(1), .container = rows.Take(2)},
         .pod_namespace = rows.Take(3),
         .pod_name = rows.Take(4),
         .time = std::chrono::system_clock::time_point(
             std::chrono::duration_cast<std::chrono::system_clock::duration>(since_epoch)),
         .admitted = rows.Integer(6) != 0,
         .json = rows.Take(7)});
    QRM_RETURN_IF_ERROR(rows.Next());
  }
  return OkStatus();
}

}  // namespace

StatusOr<NodeState> ReadState(SqliteDb& db) {
  Change change;
  QRM_ASSIGN_OR_RETURN(PodReader reader, PodReader::Open(db));
  QRM_ASSIGN_OR_RETURN(const std::vector<NodeState::Restored> pods, reader.ReadAll());
  QRM_RETURN_IF_ERROR(ReadPendingRemovals(db, change));
  QRM_RETURN_IF_ERROR(ReadPluginValues(db, change));
  QRM_RETURN_IF_ERROR(ReadTraces(db, change));
  return NodeState::Restore(pods).With(std::move(change));
}

}  // namespace qrm::checkpoint
