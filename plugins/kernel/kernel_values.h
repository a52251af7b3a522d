// Values of the machine that several owners set together. They are restored when the last owner
// ends.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/kernel/claim.h"
#include "plugins/kernel/kernel_files.h"

namespace qrm::kernel {

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

/// An optional claim that the machine rejected.
struct Refusal {
  std::string path;
  std::string reason;
};

/// Sets values with a journal. Before a file is written, its original value is durably in the
/// journal. Each write is read back. After the last owner, the original value is restored, unless
/// another process changed the file meanwhile. A value that another process wrote while this
/// program was not running becomes the original. After a kill at any instruction, the next start
/// undoes what was half done. After a reboot it writes nothing.
///
/// Threads: one at a time.
class KernelValues {
 public:
  /// `files` must outlive it. Errors: the journal's; kNotFound without a boot id.
  static StatusOr<std::unique_ptr<KernelValues>> Open(KernelFiles& files, std::string journal);

  /// Ends all owners except `living`, and writes the values of `living` again where they differ.
  /// Errors: the first value that could not be written; the others are written.
  Status KeepOnly(const std::set<std::string>& living);

  /// Adds `claims` to the claims of `owner`, written in their order. Repeating a claim corrects
  /// drift. Returns the optional claims that the machine rejects. Errors: none of `claims` is in
  /// effect; the error names the file, the value and the cause.
  StatusOr<std::vector<Refusal>> Hold(const std::string& owner, const std::vector<Claim>& claims);

  /// Whether `owner` has all of `claims`, and their files have the wanted values.
  bool Holds(const std::string& owner, const std::vector<Claim>& claims) const;

  /// Ends all claims of `owner`, in reverse order; OK if it has none. Errors: a file that could not
  /// be written; call again until OK.
  Status Release(const std::string& owner);

  /// The same for the claims of `owner` on files that are not in `claims`.
  Status ReleaseAllBut(const std::string& owner, const std::vector<Claim>& claims);

  /// Ends all owners' claims on the file at `path`, if any. Errors: as Release's.
  Status ReleaseFile(const std::string& path);

  /// All current claims, and values still to be restored.
  const JournalRecords& records() const { return records_; }

 private:
  KernelValues(KernelFiles& files, std::string journal, std::string boot)
      : files_(files), journal_(std::move(journal)), boot_(std::move(boot)) {}

  Status LoadJournal();
  void AdoptForeignValues();
  Status SaveJournal() const;

  /// Path -> why its value could not be set.
  using Failures = std::map<std::string, Status>;

  Status AddClaims(const std::string& owner, const std::vector<Claim>& claims, Failures& failures);
  void DropClaims(const std::string& owner, const std::set<std::string>& paths);
  StatusOr<std::string> Wanted(const JournalRecord& record) const;
  Status Apply(const JournalRecord& record) const;
  StatusOr<Failures> Settle(const std::vector<std::string>& paths);
  Status SettleAll(const std::vector<std::string>& paths);
  Status Announce(const std::vector<std::string>& paths);
  void Forget(const std::vector<std::string>& paths, const Failures& failures);
  StatusOr<std::vector<Refusal>> GiveUp(const std::string& owner, const Failures& failures);
  JournalRecord* Find(const std::string& path);
  bool IsSo(const JournalRecord& record) const;

  KernelFiles& files_;
  const std::string journal_;
  const std::string boot_;
  JournalRecords records_;
};

}  // namespace qrm::kernel
