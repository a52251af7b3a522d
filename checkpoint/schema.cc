// Defines the schema's versions. A released step is never edited: later versions append their own,
// as columns behind the former ones and tables beside them, so that the release before can read
// what it knows.
#include "checkpoint/schema.h"

namespace qrm::checkpoint {
namespace {

constexpr int32_t kApplicationId = 0x51524d43;  // "QRMC"

/// `sum` is the row's own checksum: SQLite finds damaged pages, not damaged values. `seq` orders
/// pods by admission and traces by age. Absent maps and lists are NULL.
constexpr const char* kVersion1 = R"sql(
CREATE TABLE pod(
  uid TEXT NOT NULL PRIMARY KEY, namespace TEXT NOT NULL, name TEXT NOT NULL, role TEXT NOT NULL,
  type TEXT NOT NULL, qos_class TEXT NOT NULL, labels TEXT, annotations TEXT,
  sum INTEGER NOT NULL, seq INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE container(
  pod TEXT NOT NULL, name TEXT NOT NULL, type INTEGER NOT NULL, position INTEGER NOT NULL,
  requests TEXT, request_source TEXT NOT NULL, applied TEXT,
  sum INTEGER NOT NULL, PRIMARY KEY(pod, name)) WITHOUT ROWID;
CREATE TABLE allocation(
  pod TEXT NOT NULL, container TEXT NOT NULL, resource TEXT NOT NULL,
  oci_property TEXT NOT NULL, value TEXT NOT NULL, quantity REAL NOT NULL,
  is_node INTEGER NOT NULL, is_scalar INTEGER NOT NULL, exclusive INTEGER NOT NULL,
  hints TEXT, envs TEXT, annotations TEXT, amount_by_node TEXT, mounts TEXT, devices TEXT,
  sum INTEGER NOT NULL, PRIMARY KEY(pod, container, resource)) WITHOUT ROWID;
CREATE TABLE pending_removal(
  pod TEXT NOT NULL, resource TEXT NOT NULL,
  sum INTEGER NOT NULL, PRIMARY KEY(pod, resource)) WITHOUT ROWID;
CREATE TABLE trace(
  slot INTEGER NOT NULL PRIMARY KEY, seq INTEGER NOT NULL, pod TEXT NOT NULL,
  container TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  time_ns INTEGER NOT NULL, admitted INTEGER NOT NULL, document TEXT NOT NULL,
  sum INTEGER NOT NULL);
)sql";

/// Who gave an allocation, what `applied` belongs to, which sidecars are init containers, and what
/// built-in plugins keep of their own. `more_sum` is the checksum of the columns that this step
/// adds; it is NULL in rows of version 1.
constexpr const char* kVersion2 = R"sql(
ALTER TABLE container ADD COLUMN runtime_class TEXT;
ALTER TABLE container ADD COLUMN applied_to TEXT;
ALTER TABLE container ADD COLUMN restartable_init INTEGER;
ALTER TABLE container ADD COLUMN more_sum INTEGER;
ALTER TABLE allocation ADD COLUMN plugin TEXT;
ALTER TABLE allocation ADD COLUMN endpoint TEXT;
ALTER TABLE allocation ADD COLUMN admitted REAL;
ALTER TABLE allocation ADD COLUMN admitted_by_node TEXT;
ALTER TABLE allocation ADD COLUMN more_sum INTEGER;
CREATE TABLE plugin_value(
  plugin TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
)sql";

/// Which class of a type of QoS-class resources a container has.
constexpr const char* kVersion3 = R"sql(
CREATE TABLE class_assignment(
  pod TEXT NOT NULL, container TEXT NOT NULL, type TEXT NOT NULL, class TEXT NOT NULL,
  sum INTEGER NOT NULL, PRIMARY KEY(pod, container, type)) WITHOUT ROWID;
)sql";

}  // namespace

const SqliteSchema& CheckpointSchema() {
  static const SqliteSchema schema = {.application_id = kApplicationId,
                                      .steps = {kVersion1, kVersion2, kVersion3}};
  return schema;
}

}  // namespace qrm::checkpoint
