// Writes only the rows of the containers in a change, however many the node has.
#include "checkpoint/state_writer.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "checkpoint/record_codec.h"
#include "checkpoint/row_sum.h"

namespace qrm::checkpoint {
namespace {

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

/// The key of a container, which shares its texts with `state` where that has them.
ContainerKey KeyIn(const NodeState& state, std::string_view uid, std::string_view container) {
  const PodRecord* const pod = state.FindPod(std::string(uid));
  if (pod == nullptr) {
    return {uid, container};
  }
  const auto known = pod->containers.find(container);
  return {pod->meta.uid, known == pod->containers.end() ? SharedText(container) : known->first};
}

}  // namespace

StateWriter::StateWriter(SqliteDb& db, Statements statements, Rows rows)
    : db_(&db), statements_(std::move(statements)), rows_(std::move(rows)) {}

StatusOr<StateWriter> StateWriter::Open(SqliteDb& db, const NodeState& found) {
  QRM_ASSIGN_OR_RETURN(Statements statements, PrepareAll(db));
  QRM_ASSIGN_OR_RETURN(Rows rows, FindRows(db, found));
  return StateWriter(db, std::move(statements), std::move(rows));
}

StatusOr<StateWriter::Statements> StateWriter::PrepareAll(SqliteDb& db) {
  QRM_ASSIGN_OR_RETURN(auto put_container,
                       db.Prepare("REPLACE INTO container(pod, name, record, sum, id) "
                                  "VALUES(?,?,?,?,?)"));
  QRM_ASSIGN_OR_RETURN(auto drop_container, db.Prepare("DELETE FROM container WHERE id=?"));
  QRM_ASSIGN_OR_RETURN(auto put_pending, db.Prepare("REPLACE INTO pending_removal VALUES(?,?,?)"));
  QRM_ASSIGN_OR_RETURN(auto drop_pending,
                       db.Prepare("DELETE FROM pending_removal WHERE pod=? AND resource=?"));
  QRM_ASSIGN_OR_RETURN(auto put_plugin_value,
                       db.Prepare("REPLACE INTO plugin_value VALUES(?,?,?)"));
  QRM_ASSIGN_OR_RETURN(auto drop_plugin_value,
                       db.Prepare("DELETE FROM plugin_value WHERE plugin=?"));
  return Statements{.put_container = std::move(put_container),
                    .drop_container = std::move(drop_container),
                    .put_pending = std::move(put_pending),
                    .drop_pending = std::move(drop_pending),
                    .put_plugin_value = std::move(put_plugin_value),
                    .drop_plugin_value = std::move(drop_plugin_value)};
}

StatusOr<StateWriter::Rows> StateWriter::FindRows(SqliteDb& db, const NodeState& found) {
  Rows rows;
  QRM_ASSIGN_OR_RETURN(SqliteStatement query, db.Prepare("SELECT id, pod, name FROM container"));
  while (true) {
    QRM_ASSIGN_OR_RETURN(const bool row, query.Step());
    if (!row) {
      return rows;
    }
    rows.last = std::max(rows.last, query.Integer(0));
    rows.ids.emplace(KeyIn(found, query.Text(1), query.Text(2)), query.Integer(0));
  }
}

Status StateWriter::Write(const Step& step) {
  if (step.change.Empty()) {
    return OkStatus();
  }
  NewIds new_ids;
  QRM_RETURN_IF_ERROR(db_->Transaction([&] { return WriteRows(step, new_ids); }));
  for (const auto& [key, id] : new_ids) {
    id == 0 ? void(rows_.ids.erase(key)) : void(rows_.ids.insert_or_assign(key, id));
  }
  return OkStatus();
}

Status StateWriter::WriteRows(const Step& step, NewIds& new_ids) {
  QRM_RETURN_IF_ERROR(DropContainers(step, new_ids));
  QRM_RETURN_IF_ERROR(PutContainers(step, new_ids));
  for (const auto& [uid, resource] : step.change.done_pending_removals) {
    QRM_RETURN_IF_ERROR(statements_.drop_pending.Run({uid, resource}));
  }
  for (const auto& [uid, resource] : step.change.add_pending_removals) {
    QRM_RETURN_IF_ERROR(RunSummed(statements_.put_pending, {uid, resource}));
  }
  for (const auto& [plugin, value] : step.change.put_plugin_values) {
    QRM_RETURN_IF_ERROR(value.empty() ? statements_.drop_plugin_value.Run({plugin})
                                      : PutPluginValue(plugin, value));
  }
  return OkStatus();
}

// A container that a step removes and puts gets a row of its own again.
Status StateWriter::DropContainers(const Step& step, NewIds& new_ids) {
  const auto drop = [&](const ContainerKey& key) -> Status {
    const auto row = rows_.ids.find(key);
    if (row == rows_.ids.end() || !new_ids.emplace(key, 0).second) {
      return OkStatus();
    }
    return statements_.drop_container.Run({row->second});
  };
  for (const std::string& uid : step.change.remove_pods) {
    for (auto row = rows_.ids.lower_bound({uid, ""});
         row != rows_.ids.end() && row->first.pod_uid == uid; ++row) {
      QRM_RETURN_IF_ERROR(drop(row->first));
    }
  }
  for (const ContainerKey& key : step.change.remove_containers) {
    QRM_RETURN_IF_ERROR(drop(key));
  }
  return OkStatus();
}

Status StateWriter::PutContainers(const Step& step, NewIds& new_ids) {
  for (const ContainerKey& key : ContainersToPut(step)) {
    QRM_RETURN_IF_ERROR(PutContainer(step, key, new_ids));
  }
  return OkStatus();
}

Status StateWriter::PutContainer(const Step& step, const ContainerKey& key, NewIds& new_ids) {
  const auto row = rows_.ids.find(key);
  const auto changed = new_ids.find(key);
  if (row != rows_.ids.end() && (changed == new_ids.end() || changed->second != 0)) {
    const int64_t id = changed == new_ids.end() ? row->second : changed->second;
    return PutRow(step, key, id);
  }
  const int64_t id = ++rows_.last;
  new_ids.insert_or_assign(key, id);
  return PutRow(step, key, id);
}

Status StateWriter::PutRow(const Step& step, const ContainerKey& key, int64_t id) {
  const PodRecord& pod = *step.after.FindPod(key.pod_uid);
  QRM_ASSIGN_OR_RETURN(const std::string record,
                       EncodeRecord(pod, *pod.containers.at(key.container)));
  return RunSummed(statements_.put_container,
                   {key.pod_uid.str(), key.container.str(), SqliteValue::Blob(record)}, {id});
}

Status StateWriter::PutPluginValue(const std::string& plugin, const std::string& value) {
  if (!IsUtf8(value)) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot store what the plugin of {} keeps: it is not UTF-8; correct the plugin",
                  plugin);
  }
  return RunSummed(statements_.put_plugin_value, {plugin, value});
}

}  // namespace qrm::checkpoint
