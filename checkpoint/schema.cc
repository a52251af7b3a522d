// Defines the schema's versions. A released step is never edited: later versions append their own,
// as columns behind the former ones and tables beside them, so that the release before can read
// what it knows.
#include "checkpoint/schema.h"

namespace qrm::checkpoint {
namespace {

constexpr int32_t kApplicationId = 0x51524d43;  // "QRMC"

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

}  // namespace

const SqliteSchema& CheckpointSchema() {
  static const SqliteSchema schema = {.application_id = kApplicationId, .steps = {kVersion1}};
  return schema;
}

}  // namespace qrm::checkpoint
