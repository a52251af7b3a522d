// Values of the machine that several owners hold together and that come back when the last is gone.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/host/claim.h"
#include "plugins/host/host_files.h"
#include "plugins/host/journal.h"

namespace qrm::host {

/// An optional claim that the machine does not keep.
struct Refusal {
  std::string path;
  std::string reason;
};

/// The journalled executor. What a file held before its first owner is in the journal, durably,
/// before the file is written; each write is read back; after the last owner the file holds its
/// former bytes again, unless somebody else changed it meanwhile. Killed at any instruction, it
/// undoes at the next Start what was half done. After a reboot it writes nothing.
///
/// Threads: one at a time.
class HostKnobs {
 public:
  /// `files` outlives it. Errors: those of the journal; kNotFound without a boot id.
  static StatusOr<std::unique_ptr<HostKnobs>> Open(HostFiles& files, std::string journal);

  /// Ends all owners but `living`, whose values are put back where they are not. Errors: the first
  /// value that could not be; the others are.
  Status KeepOnly(const std::set<std::string>& living);

  /// Has `owner` hold `claims` besides what it holds, written in their order; holding the same
  /// again writes what is not so any more. Returns the optional ones that the machine refuses.
  /// Errors: nothing of `claims` holds, and the sentence names the file, the value and the cause.
  StatusOr<std::vector<Refusal>> Hold(const std::string& owner, const std::vector<Claim>& claims);

  /// Whether `owner` holds all of `claims`, and their files have what they are to have.
  bool Holds(const std::string& owner, const std::vector<Claim>& claims) const;

  /// Ends `owner`, in reverse order; one that holds nothing is OK. Errors: a file that could not be
  /// written; to be called again, until it is.
  Status Release(const std::string& owner);

  /// The same of what `owner` holds of other files than those of `claims`.
  Status ReleaseAllBut(const std::string& owner, const std::vector<Claim>& claims);

  /// Ends what everybody holds of the file at `path`, which nobody need hold. Errors: as Release's.
  Status ReleaseFile(const std::string& path);

  /// What is held, or still to be put back.
  const JournalRecords& records() const { return records_; }

 private:
  HostKnobs(HostFiles& files, std::string journal, std::string boot)
      : files_(files), journal_(std::move(journal)), boot_(std::move(boot)) {}

  /// Path -> why its value could not be set.
  using Failures = std::map<std::string, Status>;

  Status AddClaims(const std::string& owner, const std::vector<Claim>& claims, Failures& failures);
  void DropClaims(const std::string& owner, const std::set<std::string>& paths);
  StatusOr<std::string> Wanted(const JournalRecord& record) const;
  Status Apply(const JournalRecord& record) const;
  StatusOr<Failures> Settle(const std::vector<std::string>& paths);
  Status Announce(const std::vector<std::string>& paths);
  void Forget(const std::vector<std::string>& paths, const Failures& failures);
  StatusOr<std::vector<Refusal>> GiveUp(const std::string& owner, const Failures& failures);
  JournalRecord* Find(const std::string& path);
  bool IsSo(const JournalRecord& record) const;

  HostFiles& files_;
  const Journal journal_;
  const std::string boot_;
  JournalRecords records_;
};

}  // namespace qrm::host
