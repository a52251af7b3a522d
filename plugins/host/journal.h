// The record of changes to the machine, written to disk before each change.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/host/claim.h"

namespace qrm::host {

/// One changed file of the machine.
struct JournalRecord {
  std::string path;
  ClaimForm form = ClaimForm::kWord;
  std::string original;           ///< before the first owner; not read again while it has owners
  std::vector<std::string> ours;  ///< the values that it may have from us, the latest last
  std::map<std::string, std::string> claims;  ///< owner -> value; empty: to be restored

  bool is_settled = false;  ///< the last of `ours` was written and read back

  bool operator==(const JournalRecord&) const = default;
};

/// All records, in the order of the first change.
using JournalRecords = std::vector<JournalRecord>;

/// The journal at one path.
///
/// Threads: one at a time. Cost: a Save writes and syncs the whole journal.
class Journal {
 public:
  explicit Journal(std::string path) : path_(std::move(path)) {}

  /// The records saved during `boot`. Empty if there is no journal, or if it is from another boot:
  /// a reboot undoes the changes. Errors: kDataLoss, with the remedy, for an unreadable journal.
  StatusOr<JournalRecords> Load(const std::string& boot) const;

  /// Once it returns OK, `records` survive kill -9 and power loss; otherwise the records saved
  /// before do.
  Status Save(const std::string& boot, const JournalRecords& records) const;

 private:
  const std::string path_;
};

}  // namespace qrm::host
