// Writes only the rows of the containers in a change, however many the node has.
#include "checkpoint/state_writer.h"

#include <cmath>
#include <utility>

#include "checkpoint/column_text.h"

namespace qrm::checkpoint {
namespace {

/// A pod keeps its place among pods of one name unless it changes its name. A row that did not
/// change is not written.
constexpr std::string_view kPutPod =
    "INSERT INTO pod VALUES(?,?,?,?,?,?,?,?,?,?) ON CONFLICT(uid) DO UPDATE SET "
    "namespace=excluded.namespace, name=excluded.name, role=excluded.role, type=excluded.type, "
    "qos_class=excluded.qos_class, labels=excluded.labels, annotations=excluded.annotations, "
    "sum=excluded.sum, seq=CASE WHEN namespace=excluded.namespace AND name=excluded.name "
    "THEN seq ELSE excluded.seq END WHERE sum<>excluded.sum";

SqliteValue OrNull(const std::string& text) {
  return text.empty() ? SqliteValue(nullptr) : SqliteValue(text);
}

Status CheckFinite(double quantity, const std::string& resource) {
  if (std::isfinite(quantity)) {
    return OkStatus();
  }
  return Errorf(StatusCode::kInvalidArgument,
                "cannot store a quantity of {}: {} is not a finite number; correct the plugin",
                resource, quantity);
}

/// An Origin as it stands in its columns; NULL where nobody noted one.
struct OriginColumns {
  SqliteValue plugin = nullptr;
  SqliteValue endpoint = nullptr;
  SqliteValue admitted = nullptr;
  std::string admitted_by_node;
};

StatusOr<OriginColumns> ColumnsOf(const Origin* origin, const std::string& resource) {
  OriginColumns columns;
  if (origin == nullptr) {
    return columns;
  }
  columns.plugin = origin->plugin;
  columns.endpoint = origin->endpoint;
  if (origin->admitted.has_value()) {
    QRM_RETURN_IF_ERROR(CheckFinite(origin->admitted->quantity, resource));
    columns.admitted = origin->admitted->quantity;
    QRM_ASSIGN_OR_RETURN(columns.admitted_by_node, ToColumn(origin->admitted->by_node));
  }
  return columns;
}

StatusOr<int64_t> Number(SqliteDb& db, std::string_view sql) {
  QRM_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare(sql));
  QRM_ASSIGN_OR_RETURN(const bool row, query.Step());
  return row ? query.Integer(0) : 0;
}

}  // namespace

StateWriter::StateWriter(SqliteDb& db, Statements statements, Sequences sequences)
    : db_(&db), statements_(std::move(statements)), sequences_(sequences) {}

StatusOr<StateWriter> StateWriter::Open(SqliteDb& db) {
  QRM_ASSIGN_OR_RETURN(Statements statements, PrepareAll(db));
  QRM_ASSIGN_OR_RETURN(const Sequences sequences, LastSequences(db));
  return StateWriter(db, std::move(statements), sequences);
}

StatusOr<StateWriter::Statements> StateWriter::PrepareAll(SqliteDb& db) {
  QRM_ASSIGN_OR_RETURN(auto put_pod, db.Prepare(kPutPod));
  QRM_ASSIGN_OR_RETURN(auto put_container,
                       db.Prepare("REPLACE INTO container VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"));
  QRM_ASSIGN_OR_RETURN(
      auto put_allocation,
      db.Prepare("REPLACE INTO allocation VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"));
  QRM_ASSIGN_OR_RETURN(auto put_pending, db.Prepare("REPLACE INTO pending_removal VALUES(?,?,?)"));
  QRM_ASSIGN_OR_RETURN(auto put_plugin_value,
                       db.Prepare("REPLACE INTO plugin_value VALUES(?,?,?)"));
  QRM_ASSIGN_OR_RETURN(auto drop_plugin_value,
                       db.Prepare("DELETE FROM plugin_value WHERE plugin=?"));
  QRM_ASSIGN_OR_RETURN(
      auto put_trace,
      db.Prepare("REPLACE INTO trace(seq, pod, container, namespace, name, time_ns, admitted, "
                 "document, sum, slot) VALUES(?,?,?,?,?,?,?,?,?,?)"));
  QRM_ASSIGN_OR_RETURN(auto drop_pod, db.Prepare("DELETE FROM pod WHERE uid=?"));
  QRM_ASSIGN_OR_RETURN(auto drop_containers, db.Prepare("DELETE FROM container WHERE pod=?"));
  QRM_ASSIGN_OR_RETURN(auto drop_allocations, db.Prepare("DELETE FROM allocation WHERE pod=?"));
  QRM_ASSIGN_OR_RETURN(auto drop_container,
                       db.Prepare("DELETE FROM container WHERE pod=? AND name=?"));
  QRM_ASSIGN_OR_RETURN(auto drop_container_allocations,
                       db.Prepare("DELETE FROM allocation WHERE pod=? AND container=?"));
  QRM_ASSIGN_OR_RETURN(auto drop_pod_if_empty,
                       db.Prepare("DELETE FROM pod WHERE uid=?1 AND NOT EXISTS(SELECT 1 FROM "
                                  "container WHERE pod=?1)"));
  QRM_ASSIGN_OR_RETURN(auto drop_pending,
                       db.Prepare("DELETE FROM pending_removal WHERE pod=? AND resource=?"));
  QRM_ASSIGN_OR_RETURN(auto put_class,
                       db.Prepare("REPLACE INTO class_assignment VALUES(?,?,?,?,?)"));
  QRM_ASSIGN_OR_RETURN(auto drop_pod_classes,
                       db.Prepare("DELETE FROM class_assignment WHERE pod=?"));
  QRM_ASSIGN_OR_RETURN(auto drop_container_classes,
                       db.Prepare("DELETE FROM class_assignment WHERE pod=? AND container=?"));
  return Statements{.put_pod = std::move(put_pod),
                    .put_container = std::move(put_container),
                    .put_allocation = std::move(put_allocation),
                    .put_pending = std::move(put_pending),
                    .put_plugin_value = std::move(put_plugin_value),
                    .put_trace = std::move(put_trace),
                    .drop_pod = std::move(drop_pod),
                    .drop_containers = std::move(drop_containers),
                    .drop_allocations = std::move(drop_allocations),
                    .drop_container = std::move(drop_container),
                    .drop_container_allocations = std::move(drop_container_allocations),
                    .drop_pod_if_empty = std::move(drop_pod_if_empty),
                    .drop_pending = std::move(drop_pending),
                    .drop_plugin_value = std::move(drop_plugin_value),
                    .put_class = std::move(put_class),
                    .drop_pod_classes = std::move(drop_pod_classes),
                    .drop_container_classes = std::move(drop_container_classes)};
}

StatusOr<StateWriter::Sequences> StateWriter::LastSequences(SqliteDb& db) {
  QRM_ASSIGN_OR_RETURN(const int64_t pod, Number(db, "SELECT max(seq) FROM pod"));
  QRM_ASSIGN_OR_RETURN(const int64_t trace, Number(db, "SELECT max(seq) FROM trace"));
  QRM_ASSIGN_OR_RETURN(const int64_t classes,
                       Number(db, "SELECT EXISTS(SELECT 1 FROM class_assignment)"));
  return Sequences{.pod = pod, .trace = trace, .any_classes = classes != 0};
}

Status StateWriter::Write(const Change& change) {
  if (change.Empty()) {
    return OkStatus();
  }
  Sequences sequences = sequences_;
  QRM_RETURN_IF_ERROR(db_->Transaction([&] { return WriteRows(change, sequences); }));
  sequences_ = sequences;
  return OkStatus();
}

Status StateWriter::WriteRows(const Change& change, Sequences& sequences) {
  for (const std::string& uid : change.remove_pods) {
    QRM_RETURN_IF_ERROR(RemovePod(uid, sequences));
  }
  for (const ContainerKey& key : change.remove_containers) {
    QRM_RETURN_IF_ERROR(RemoveContainer(key, sequences));
  }
  for (const Change::PutContainer& put : change.put_containers) {
    QRM_RETURN_IF_ERROR(PutContainer(put, sequences));
  }
  for (const auto& [uid, resource] : change.done_pending_removals) {
    QRM_RETURN_IF_ERROR(statements_.drop_pending.Run({uid, resource}));
  }
  for (const auto& [uid, resource] : change.add_pending_removals) {
    QRM_RETURN_IF_ERROR(RunSummed(statements_.put_pending, {uid, resource}));
  }
  for (const auto& [plugin, value] : change.put_plugin_values) {
    QRM_RETURN_IF_ERROR(value.empty() ? statements_.drop_plugin_value.Run({plugin})
                                      : PutPluginValue(plugin, value));
  }
  for (const DecisionTrace& trace : change.traces) {
    QRM_RETURN_IF_ERROR(PutTrace(trace, sequences));
  }
  return OkStatus();
}

Status StateWriter::RemovePod(const std::string& uid, const Sequences& sequences) {
  if (sequences.any_classes) {
    QRM_RETURN_IF_ERROR(statements_.drop_pod_classes.Run({uid}));
  }
  QRM_RETURN_IF_ERROR(statements_.drop_allocations.Run({uid}));
  QRM_RETURN_IF_ERROR(statements_.drop_containers.Run({uid}));
  return statements_.drop_pod.Run({uid});
}

Status StateWriter::RemoveContainer(const ContainerKey& key, const Sequences& sequences) {
  if (sequences.any_classes) {
    QRM_RETURN_IF_ERROR(statements_.drop_container_classes.Run({key.pod_uid, key.container}));
  }
  QRM_RETURN_IF_ERROR(statements_.drop_container_allocations.Run({key.pod_uid, key.container}));
  QRM_RETURN_IF_ERROR(statements_.drop_container.Run({key.pod_uid, key.container}));
  return statements_.drop_pod_if_empty.Run({key.pod_uid});
}

Status StateWriter::PutContainer(const Change::PutContainer& put, Sequences& sequences) {
  const PodMeta& pod = put.pod;
  QRM_ASSIGN_OR_RETURN(const std::string labels, ToColumn(pod.labels));
  QRM_ASSIGN_OR_RETURN(const std::string annotations, ToColumn(pod.annotations));
  QRM_RETURN_IF_ERROR(RunSummed(statements_.put_pod,
                                {pod.uid, pod.pod_namespace, pod.name, pod.role, pod.type,
                                 pod.qos_class, OrNull(labels), OrNull(annotations)},
                                {++sequences.pod}));

  const ContainerRecord& record = put.record;
  QRM_ASSIGN_OR_RETURN(const std::string requests, ToColumn(record.requests));
  QRM_ASSIGN_OR_RETURN(const std::string applied, ToColumn(record.applied));
  QRM_RETURN_IF_ERROR(RunSummedTwice(
      statements_.put_container,
      {pod.uid, put.container, static_cast<int>(record.type), static_cast<int64_t>(record.index),
       OrNull(requests), record.request_source, OrNull(applied)},
      {OrNull(record.runtime_class), OrNull(record.applied_to), record.restartable_init}));

  const ContainerKey key = {.pod_uid = pod.uid, .container = put.container};
  QRM_RETURN_IF_ERROR(statements_.drop_container_allocations.Run({key.pod_uid, key.container}));
  for (const auto& [resource, allocation] : record.allocations) {
    const auto origin = record.origins.find(resource);
    QRM_RETURN_IF_ERROR(PutAllocation(key, resource, allocation,
                                      origin == record.origins.end() ? nullptr : &origin->second));
  }
  return PutClasses(key, record.classes, sequences);
}

Status StateWriter::PutClasses(const ContainerKey& key, const StringMap& classes,
                               Sequences& sequences) {
  if (sequences.any_classes) {
    QRM_RETURN_IF_ERROR(statements_.drop_container_classes.Run({key.pod_uid, key.container}));
  }
  for (const auto& [type, name] : classes) {
    QRM_RETURN_IF_ERROR(RunSummed(statements_.put_class, {key.pod_uid, key.container, type, name}));
    sequences.any_classes = true;
  }
  return OkStatus();
}

Status StateWriter::PutAllocation(const ContainerKey& key, const std::string& resource,
                                  const ResourceAllocation& allocation, const Origin* origin) {
  QRM_RETURN_IF_ERROR(CheckFinite(allocation.quantity, resource));
  const std::string hints = ToColumn(allocation.hints);
  QRM_ASSIGN_OR_RETURN(const std::string envs, ToColumn(allocation.envs));
  QRM_ASSIGN_OR_RETURN(const std::string annotations, ToColumn(allocation.annotations));
  QRM_ASSIGN_OR_RETURN(const std::string amounts, ToColumn(allocation.amount_by_node));
  QRM_ASSIGN_OR_RETURN(const std::string mounts, ToColumn(allocation.mounts));
  QRM_ASSIGN_OR_RETURN(const std::string devices, ToColumn(allocation.devices));
  QRM_ASSIGN_OR_RETURN(const OriginColumns more, ColumnsOf(origin, resource));
  return RunSummedTwice(
      statements_.put_allocation,
      {key.pod_uid, key.container, resource, allocation.oci_property, allocation.value,
       allocation.quantity, allocation.is_node_resource, allocation.is_scalar_resource,
       allocation.exclusive, OrNull(hints), OrNull(envs), OrNull(annotations), OrNull(amounts),
       OrNull(mounts), OrNull(devices)},
      {more.plugin, more.endpoint, more.admitted, OrNull(more.admitted_by_node)});
}

Status StateWriter::PutPluginValue(const std::string& plugin, const std::string& value) {
  StringMap as_map = {{plugin, value}};  // for its check of the text
  QRM_RETURN_IF_ERROR(ToColumn(as_map).status());
  return RunSummed(statements_.put_plugin_value, {plugin, value});
}

Status StateWriter::PutTrace(const DecisionTrace& trace, Sequences& sequences) {
  const auto since_epoch =
      std::chrono::duration_cast<std::chrono::nanoseconds>(trace.time.time_since_epoch());
  const int64_t seq = ++sequences.trace;
  // The newest takes the place of the oldest.
  const int64_t slot = seq % static_cast<int64_t>(NodeState::kMaxTraces);
  return RunSummed(statements_.put_trace,
                   {seq, trace.key.pod_uid, trace.key.container, trace.pod_namespace,
                    trace.pod_name, int64_t{since_epoch.count()}, trace.admitted, trace.json},
                   {slot});
}

}  // namespace qrm::checkpoint
