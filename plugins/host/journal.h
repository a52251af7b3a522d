// What was changed on the machine, on disk before it is changed.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/host/claim.h"

namespace qrm::host {

/// One file of the machine that somebody changed.
struct JournalRecord {
  std::string path;
  ClaimForm form = ClaimForm::kWord;
  std::string original;           ///< before the first owner; never read again while it has one
  std::vector<std::string> ours;  ///< what it may hold because of us, the last one last
  std::map<std::string, std::string> claims;  ///< owner -> value; none: it is to be as before

  bool is_settled = false;  ///< the last of `ours` was written and read back

  bool operator==(const JournalRecord&) const = default;
};

/// All of them, in the order in which they were first changed.
using JournalRecords = std::vector<JournalRecord>;

/// The journal at one path.
///
/// Threads: one at a time. Cost: a Save writes and syncs the whole journal.
class Journal {
 public:
  explicit Journal(std::string path) : path_(std::move(path)) {}

  /// What was saved during `boot`; empty where there is no journal, or one of another boot, whose
  /// changes went with it. Errors: kDataLoss for one that cannot be read, with what to do.
  StatusOr<JournalRecords> Load(const std::string& boot) const;

  /// Once it returns OK, `records` survive kill -9 and power loss; else what was saved before does.
  Status Save(const std::string& boot, const JournalRecords& records) const;

 private:
  const std::string path_;
};

}  // namespace qrm::host
