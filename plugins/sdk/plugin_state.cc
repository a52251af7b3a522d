// Keeps a plugin's state in a SQLite database: one row for each grant, and one for the plugin's
// saved state.
#include "plugins/sdk/plugin_state.h"

#include <fstream>
#include <functional>
#include <memory>
#include <utility>

#include "api/base/check.h"
#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "api/wire.h"
#include "checkpoint/sqlite/durable_file.h"
#include "checkpoint/sqlite/sqlite_db.h"

namespace qrm::sdk {
namespace {

using checkpoint::SqliteDb;
using checkpoint::SqliteStatement;
using checkpoint::SqliteValue;

/// "QRMP" in the file header.
constexpr int32_t kApplicationId = 0x51524d50;

/// When the log is checkpointed. Rarely, since a container that is admitted meanwhile waits for it,
/// and since the manager restores what is lost with a log. Always before the log has 4 MiB, its
/// limit.
constexpr int kLogPages = 900;

/// An additional table: the boot since which the manager restores lost grants. It is not a step of
/// the schema, so that the previous release can open the database.
constexpr char kTaughtTable[] =
    "CREATE TABLE IF NOT EXISTS taught (id INTEGER PRIMARY KEY CHECK (id = 1), boot TEXT NOT NULL)";

/// Requests and allocations are serialized messages of resourceplugin.v1alpha1.
checkpoint::SqliteSchema Schema() {
  return {.application_id = kApplicationId,
          .steps = {"CREATE TABLE grants (pod_uid TEXT NOT NULL, container TEXT NOT NULL,"
                    " request BLOB NOT NULL, allocation BLOB NOT NULL, admitted BLOB,"
                    " PRIMARY KEY (pod_uid, container)) WITHOUT ROWID;"
                    "CREATE TABLE saved (id INTEGER PRIMARY KEY CHECK (id = 1),"
                    " state BLOB NOT NULL)"}};
}

template <typename Message>
StatusOr<Message> ParseMessage(std::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Errorf(StatusCode::kDataLoss, "cannot read {} bytes: they are not a {}", bytes.size(),
                  message.GetTypeName());
  }
  return message;
}

StatusOr<ResourceAllocation> ReadAllocation(std::string_view bytes) {
  QRM_ASSIGN_OR_RETURN(const auto message, ParseMessage<wire::pb::ResourceAllocationInfo>(bytes));
  return wire::FromWire(message);
}

/// The grant in the current row of LoadGrants.
StatusOr<Grant> ReadGrant(const SqliteStatement& row) {
  Grant grant;
  QRM_ASSIGN_OR_RETURN(const auto request_message,
                       ParseMessage<wire::pb::ResourceRequest>(row.Blob(2)));
  QRM_ASSIGN_OR_RETURN(grant.request, wire::FromWire(request_message));
  QRM_ASSIGN_OR_RETURN(grant.allocation, ReadAllocation(row.Blob(3)));
  if (!row.IsNull(4)) {
    QRM_ASSIGN_OR_RETURN(ResourceAllocation admitted, ReadAllocation(row.Blob(4)));
    grant.admitted = std::make_shared<const ResourceAllocation>(std::move(admitted));
  }
  return grant;
}

/// An unreadable row loses only its own container's grant.
Status LoadGrants(SqliteDb& db, Grants& grants) {
  QRM_ASSIGN_OR_RETURN(
      SqliteStatement rows,
      db.Prepare("SELECT pod_uid, container, request, allocation, admitted FROM grants"));
  QRM_RETURN_IF_ERROR(rows.Bind({}));
  while (true) {
    QRM_ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) {
      return OkStatus();
    }
    ContainerKey key{std::string(rows.Text(0)), std::string(rows.Text(1))};
    StatusOr<Grant> grant = ReadGrant(rows);
    if (grant.ok()) {
      grants.emplace(std::move(key), *std::move(grant));
    } else {
      log::Warning("unreadable grant removed", {{"pod_uid", key.pod_uid},
                                                {"container", key.container},
                                                {"error", MessageOf(grant.status())}});
    }
  }
}

/// The boot in which the manager began to restore lost grants; empty if it does not.
StatusOr<std::string> LoadTaught(SqliteDb& db) {
  QRM_ASSIGN_OR_RETURN(
      SqliteStatement table,
      db.Prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'taught'"));
  QRM_ASSIGN_OR_RETURN(const bool is_made, table.Step());
  if (!is_made) {
    return std::string();
  }
  QRM_ASSIGN_OR_RETURN(SqliteStatement taught, db.Prepare("SELECT boot FROM taught"));
  QRM_ASSIGN_OR_RETURN(const bool found, taught.Step());
  return found ? std::string(taught.Text(0)) : std::string();
}

class SqliteState final : public PluginState {
 public:
  SqliteState(std::string path, std::string boot)
      : path_(std::move(path)), boot_(std::move(boot)) {}

  Status Open() {
    std::vector<std::string> repairs;
    QRM_ASSIGN_OR_RETURN(db_, checkpoint::OpenOrBeginAnew(
                                  path_, Schema(), {.log_pages = kLogPages},
                                  [this](SqliteDb& opened) { return LoadAll(opened); }, repairs));
    for (const std::string& repair : repairs) {
      log::Warning("plugin state repaired", {{"repair", repair}});
    }
    return OkStatus();
  }

  StatusOr<StoredState> Load() override { return std::exchange(stored_, {}); }

  Status Commit(const StateChange& change) override {
    if (!db_.has_value() || !db_->IsInPlace()) {
      return Errorf(StatusCode::kDataLoss, "cannot write {}: the file was deleted or replaced",
                    path_);
    }
    const std::string taught = change.manager_teaches ? boot_ : "";
    const bool is_set_right = (change.granted.empty() || !taught.empty()) &&
                              !change.saved.has_value() && taught == taught_;
    const auto survives =
        is_set_right ? SqliteDb::Survives::kKilled : SqliteDb::Survives::kPowerLoss;
    QRM_RETURN_IF_ERROR(db_->Transaction([&] { return WriteAll(taught, change); }, survives));
    taught_ = taught;
    return OkStatus();
  }

  Status BeginAnew(const StateChange& everything) override {
    db_.reset();
    QRM_RETURN_IF_ERROR(Open());
    if (!stored_.grants.empty() || stored_.saved.has_value()) {
      db_.reset();
      QRM_ASSIGN_OR_RETURN(const std::string aside, checkpoint::MoveAside(path_));
      log::Warning("plugin state moved aside", {{"path", path_}, {"to", aside}});
      QRM_RETURN_IF_ERROR(Open());
    }
    log::Warning("plugin state recreated", {{"path", path_}});
    return Commit(everything);
  }

 private:
  /// A power loss may have undone the latest grants. The resources of older grants may then belong
  /// to other containers by the manager's records, and the manager restores the right ones.
  bool AreVoid() const { return !taught_.empty() && taught_ != boot_; }

  Status LoadAll(SqliteDb& db) {
    stored_ = {};
    QRM_ASSIGN_OR_RETURN(taught_, LoadTaught(db));
    if (AreVoid()) {
      log::Info(
          "plugin starts without grants: the machine was rebooted, and the manager restores them",
          {{"path", db.path()}});
    } else {
      QRM_RETURN_IF_ERROR(LoadGrants(db, stored_.grants));
    }
    QRM_ASSIGN_OR_RETURN(SqliteStatement saved, db.Prepare("SELECT state FROM saved"));
    QRM_ASSIGN_OR_RETURN(const bool found, saved.Step());
    if (found) {
      stored_.saved = std::string(saved.Blob(0));
    }
    return OkStatus();
  }

  SqliteDb& db() {
    QRM_CHECK(db_.has_value());
    return *db_;
  }

  Status Run(std::string_view sql, std::initializer_list<SqliteValue> values) {
    QRM_ASSIGN_OR_RETURN(SqliteStatement statement, db().Prepare(sql));
    return statement.Run(values);
  }

  Status WriteTaught(const std::string& taught) {
    if (AreVoid()) {
      QRM_RETURN_IF_ERROR(db().Execute("DELETE FROM grants"));
    }
    QRM_RETURN_IF_ERROR(db().Execute(std::string(kTaughtTable) + "; DELETE FROM taught"));
    return taught.empty() ? OkStatus() : Run("INSERT INTO taught VALUES (1, ?)", {taught});
  }

  Status WriteAll(const std::string& taught, const StateChange& change) {
    if (taught != taught_) {
      QRM_RETURN_IF_ERROR(WriteTaught(taught));
    }
    if (change.removed_pod.has_value()) {
      QRM_RETURN_IF_ERROR(Run("DELETE FROM grants WHERE pod_uid = ?", {*change.removed_pod}));
    }
    for (const ContainerKey& key : change.removed) {
      QRM_RETURN_IF_ERROR(Run("DELETE FROM grants WHERE pod_uid = ? AND container = ?",
                              {key.pod_uid.str(), key.container.str()}));
    }
    QRM_ASSIGN_OR_RETURN(SqliteStatement put,
                         db().Prepare("INSERT OR REPLACE INTO grants VALUES (?, ?, ?, ?, ?)"));
    for (const auto& [key, grant] : change.granted) {
      const std::string request = wire::ToWire(grant.request).SerializeAsString();
      const std::string allocation = wire::ToWire(grant.allocation).SerializeAsString();
      const std::string admitted =
          grant.admitted != nullptr ? wire::ToWire(*grant.admitted).SerializeAsString() : "";
      QRM_RETURN_IF_ERROR(put.Run(
          {key.pod_uid.str(), key.container.str(), SqliteValue::Blob(request),
           SqliteValue::Blob(allocation),
           grant.admitted != nullptr ? SqliteValue::Blob(admitted) : SqliteValue(nullptr)}));
    }
    if (change.saved.has_value()) {
      QRM_RETURN_IF_ERROR(
          Run("INSERT OR REPLACE INTO saved VALUES (1, ?)", {SqliteValue::Blob(*change.saved)}));
    }
    return OkStatus();
  }

  const std::string path_;
  const std::string boot_;
  std::optional<SqliteDb> db_;  ///< none after a failed BeginAnew
  std::string taught_;          ///< as LoadTaught
  StoredState stored_;
};

/// The host has the grants in memory anyway; nothing else needs to be kept.
class MemoryState final : public PluginState {
 public:
  MemoryState(StoredState begin, std::function<void(const std::string& saved)> on_save)
      : begin_(std::move(begin)), on_save_(std::move(on_save)) {}

  StatusOr<StoredState> Load() override { return std::exchange(begin_, {}); }
  Status Commit(const StateChange& change) override {
    if (change.saved.has_value() && on_save_) {
      on_save_(*change.saved);
    }
    return OkStatus();
  }
  Status BeginAnew(const StateChange& everything) override { return Commit(everything); }

 private:
  StoredState begin_;
  const std::function<void(const std::string& saved)> on_save_;
};

}  // namespace

std::string CurrentBoot() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

StatusOr<std::unique_ptr<PluginState>> OpenPluginState(const std::string& path,
                                                       const std::string& boot) {
  auto state = std::make_unique<SqliteState>(path, boot);
  QRM_RETURN_IF_ERROR(state->Open());
  return state;
}

std::unique_ptr<PluginState> MakeMemoryState(
    StoredState begin, std::function<void(const std::string& saved)> on_save) {
  return std::make_unique<MemoryState>(std::move(begin), std::move(on_save));
}

}  // namespace qrm::sdk
