// Writes the journal as JSON, the whole of it each time; writes files and reads them back.
#include "plugins/kernel/kernel_values.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "checkpoint/sqlite/durable_file.h"

namespace qrm::kernel {
namespace {

using Json = nlohmann::json;

Json ToJson(const JournalRecord& record) {
  return {{"path", record.path},         {"form", static_cast<int>(record.form)},
          {"original", record.original}, {"ours", record.ours},
          {"claims", record.claims},     {"settled", record.is_settled}};
}

JournalRecord FromJson(const Json& json) {
  return {.path = json.at("path"),
          .form = static_cast<ClaimForm>(json.at("form").get<int>()),
          .original = json.at("original"),
          .ours = json.at("ours"),
          .claims = json.at("claims"),
          .is_settled = json.at("settled")};
}

constexpr char kBootId[] = "proc/sys/kernel/random/boot_id";
constexpr char kOnline[] = "sys/devices/system/cpu/online";
/// A limit may depend on another limit of the same object, so failed writes are repeated.
constexpr int kPasses = 2;
constexpr int kReads = 3;

bool ComesFromAny(const std::vector<std::string>& ours, ClaimForm form, const std::string& shown) {
  return std::ranges::any_of(
      ours, [&](const std::string& value) { return ComesFrom(form, shown, value); });
}

/// Merges two claims of one owner on the same file.
StatusOr<std::string> Joined(const Claim& claim, const std::string& before) {
  if (!HoldsCpus(claim.form)) {
    return Combine(claim.form, "", {before, claim.value}, {});
  }
  QRM_ASSIGN_OR_RETURN(const CpuSet first, CpuSet::Parse(before));
  QRM_ASSIGN_OR_RETURN(const CpuSet second, CpuSet::Parse(claim.value));
  return ToString(first | second);
}

}  // namespace

StatusOr<std::unique_ptr<KernelValues>> KernelValues::Open(KernelFiles& files,
                                                           std::string journal) {
  QRM_ASSIGN_OR_RETURN(std::string boot, files.Read(kBootId));
  std::unique_ptr<KernelValues> knobs(new KernelValues(files, std::move(journal), std::move(boot)));
  QRM_RETURN_IF_ERROR(knobs->LoadJournal());
  knobs->AdoptForeignValues();
  return knobs;
}

/// Takes over the records of this boot: a reboot undoes all changes.
Status KernelValues::LoadJournal() {
  SmallFile file(journal_, O_RDONLY);
  if (file.error() == ENOENT) {
    return OkStatus();
  }
  try {
    const Json json = Json::parse(file.error() == 0 ? file.Read() : "");
    if (json.at("boot") == boot_) {
      for (const Json& record : json.at("records")) {
        records_.push_back(FromJson(record));
      }
    }
    return OkStatus();
  } catch (const Json::exception& error) {
    return Errorf(StatusCode::kDataLoss,
                  "cannot read {}, the journal of the machine's original values: {}; move it "
                  "aside: the values it lists then stay changed until a reboot",
                  journal_, error.what());
  }
}

/// What another process wrote while this program was not running is what is restored later. Sets of
/// CPUs are left out: the kernel changes them, too.
void KernelValues::AdoptForeignValues() {
  for (JournalRecord& record : records_) {
    if (!record.is_settled || record.claims.empty() || HoldsCpus(record.form) ||
        record.form == ClaimForm::kPartition || record.form == ClaimForm::kKept) {
      continue;
    }
    const StatusOr<std::string> now = files_.Read(record.path);
    if (now.ok() && !ComesFromAny(record.ours, record.form, *now)) {
      log::Info("host knob was changed by another process; its value is restored later",
                {{"file", record.path}, {"value", *now}, {"before", record.original}});
      record.original = *now;
      record.ours.front() = *now;
    }
  }
}

/// Once it returns OK, the records survive kill -9 and power loss; otherwise those saved before do.
Status KernelValues::SaveJournal() const {
  Json json = {{"boot", boot_}, {"records", Json::array()}};
  for (const JournalRecord& record : records_) {
    json["records"].push_back(ToJson(record));
  }
  QRM_RETURN_IF_ERROR(checkpoint::MakeDurableDirectory(checkpoint::DirectoryOf(journal_)));
  return checkpoint::WriteFileDurably(
      journal_, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

JournalRecord* KernelValues::Find(const std::string& path) {
  const auto record =
      std::ranges::find_if(records_, [&](const JournalRecord& of) { return of.path == path; });
  return record == records_.end() ? nullptr : &*record;
}

/// The value that the file must have.
StatusOr<std::string> KernelValues::Wanted(const JournalRecord& record) const {
  if (record.claims.empty()) {
    return record.original;
  }
  std::vector<std::string> values;
  values.reserve(record.claims.size());
  for (const auto& [owner, value] : record.claims) {
    values.push_back(value);
  }
  CpuSet online;
  if (record.form == ClaimForm::kCpuList || record.form == ClaimForm::kCpuMask) {
    QRM_ASSIGN_OR_RETURN(const std::string text, files_.Read(kOnline));
    QRM_ASSIGN_OR_RETURN(online, CpuSet::Parse(text));
  }
  StatusOr<std::string> wanted = Combine(record.form, record.original, values, online);
  QRM_RETURN_IF_ERROR(Annotate(wanted.status(), "cannot set " + record.path));
  return wanted;
}

/// Records the claims of `owner`. Unreadable and conflicting claims go to `failures`.
Status KernelValues::AddClaims(const std::string& owner, const std::vector<Claim>& claims,
                               Failures& failures) {
  std::set<std::string> seen;
  for (const Claim& claim : claims) {
    JournalRecord* record = Find(claim.path);
    if (record == nullptr) {
      const StatusOr<std::string> original = files_.Read(claim.path);
      if (!original.ok()) {
        failures[claim.path] = original.status();
        continue;
      }
      records_.push_back(
          {.path = claim.path, .form = claim.form, .original = *original, .ours = {*original}});
      record = &records_.back();
    }
    std::string value = claim.value;
    if (!seen.insert(claim.path).second) {
      QRM_ASSIGN_OR_RETURN(value, Joined(claim, record->claims[owner]));
    }
    record->claims[owner] = value;
    if (const auto wanted = Wanted(*record); !wanted.ok()) {
      failures[claim.path] = wanted.status();
    }
  }
  return OkStatus();
}

void KernelValues::DropClaims(const std::string& owner, const std::set<std::string>& paths) {
  for (JournalRecord& record : records_) {
    if (paths.contains(record.path)) {
      record.claims.erase(owner);
    }
  }
}

/// Journals the values before they are written. The kernel may change a value, so until it is read
/// back, any value in the file may come from us.
Status KernelValues::Announce(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    JournalRecord* const record = Find(path);
    if (record == nullptr || record->claims.empty()) {
      continue;
    }
    const StatusOr<std::string> wanted = Wanted(*record);
    if (wanted.ok() && !IsSameValue(record->form, record->ours.back(), *wanted)) {
      record->ours.push_back(*wanted);
      record->is_settled = false;
    }
  }
  return SaveJournal();
}

/// Writes the wanted value to the file of `record`.
Status KernelValues::Apply(const JournalRecord& record) const {
  const bool is_over = record.claims.empty();
  if (record.form == ClaimForm::kKept && !is_over) {
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const std::string wanted, Wanted(record));
  const StatusOr<std::string> before = files_.Read(record.path);
  if (is_over && before.status().code() == StatusCode::kNotFound) {
    return OkStatus();  // the CPU, driver or device is gone, and its value too
  }
  QRM_RETURN_IF_ERROR(before.status());
  if (IsSameValue(record.form, *before, wanted) && (!is_over || *before == wanted)) {
    return OkStatus();
  }
  if (is_over && record.is_settled && record.form != ClaimForm::kKept &&
      !ComesFromAny(record.ours, record.form, *before)) {
    log::Warning("host knob was changed by another process; it is not restored",
                 {{"file", record.path}, {"value", *before}, {"before", record.original}});
    return OkStatus();
  }
  QRM_RETURN_IF_ERROR(files_.Write(record.path, wanted));
  // An interrupt that is being moved briefly shows its old CPUs.
  std::string after;
  for (int i = 0; i < kReads && !IsSameValue(record.form, after, wanted); ++i) {
    QRM_ASSIGN_OR_RETURN(after, files_.Read(record.path));
  }
  if (!IsSameValue(record.form, after, wanted)) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot set {} to {}: the kernel accepted it but shows {}; request a value that "
                  "the kernel keeps",
                  record.path, wanted, after);
  }
  return OkStatus();
}

/// Removes records after the files of `paths` were written, except `failures`.
void KernelValues::Forget(const std::vector<std::string>& paths, const Failures& failures) {
  for (const std::string& path : paths) {
    JournalRecord* const record = Find(path);
    if (record == nullptr || failures.contains(path)) {
      continue;
    }
    const StatusOr<std::string> wanted = Wanted(*record);
    if (record->claims.empty()) {
      records_.erase(records_.begin() + (record - records_.data()));
    } else if (wanted.ok()) {
      record->ours = {record->original, *wanted};
      record->is_settled = true;
    }
  }
  // The journal on disk then lists too much, which is harmless.
  if (const Status saved = SaveJournal(); !saved.ok()) {
    log::Warning("cannot write the journal of host knobs; it is outdated",
                 {{"error", MessageOf(saved)}});
  }
}

/// Writes the wanted values to the files of `paths`, in that order. Errors: the journal's; then
/// nothing was written.
StatusOr<KernelValues::Failures> KernelValues::Settle(const std::vector<std::string>& paths) {
  QRM_RETURN_IF_ERROR(Announce(paths));
  Failures failures;
  std::vector<std::string> left = paths;
  for (int pass = 0; pass < kPasses; ++pass) {
    failures.clear();
    for (const std::string& path : left) {
      const JournalRecord* const record = Find(path);
      if (const Status set = record != nullptr ? Apply(*record) : OkStatus(); !set.ok()) {
        failures[path] = set;
      }
    }
    std::erase_if(left, [&](const std::string& path) { return !failures.contains(path); });
  }
  Forget(paths, failures);
  return failures;
}

/// The same; errors: also the first value that could not be written.
Status KernelValues::SettleAll(const std::vector<std::string>& paths) {
  if (paths.empty()) {
    return OkStatus();
  }
  QRM_ASSIGN_OR_RETURN(const Failures failures, Settle(paths));
  return failures.empty() ? OkStatus() : failures.begin()->second;
}

/// Drops the optional claims of `owner` that are in `failures`.
StatusOr<std::vector<Refusal>> KernelValues::GiveUp(const std::string& owner,
                                                    const Failures& failures) {
  std::vector<Refusal> refusals;
  std::vector<std::string> given_up;
  for (const auto& [path, failure] : failures) {
    refusals.push_back({.path = path, .reason = MessageOf(failure)});
    DropClaims(owner, {path});
    given_up.push_back(path);
  }
  QRM_RETURN_IF_ERROR(Settle(given_up).status());
  return refusals;
}

StatusOr<std::vector<Refusal>> KernelValues::Hold(const std::string& owner,
                                                  const std::vector<Claim>& claims) {
  const JournalRecords before = records_;
  Failures failures;
  Status status = AddClaims(owner, claims, failures);
  std::vector<std::string> paths;
  std::set<std::string> optional;
  for (const Claim& claim : claims) {
    if (!failures.contains(claim.path)) {
      paths.push_back(claim.path);
    }
    if (claim.is_optional) {
      optional.insert(claim.path);
    }
  }
  const auto is_required = [&](const auto& failure) { return !optional.contains(failure.first); };
  const auto refused = std::ranges::find_if(failures, is_required);
  if (!status.ok() || refused != failures.end()) {
    records_ = before;
    return status.ok() ? refused->second : status;
  }
  for (const auto& [path, failure] : failures) {
    DropClaims(owner, {path});
  }
  const StatusOr<Failures> unset = Settle(paths);
  if (!unset.ok()) {
    records_ = before;
    return unset.status();
  }
  failures.insert(unset->begin(), unset->end());
  const auto unkept = std::ranges::find_if(failures, is_required);
  if (unkept != failures.end()) {
    Status why = unkept->second;
    DropClaims(owner, {paths.begin(), paths.end()});
    QRM_RETURN_IF_ERROR(Annotate(Settle({paths.rbegin(), paths.rend()}).status(), MessageOf(why)));
    return why;
  }
  return GiveUp(owner, failures);
}

bool KernelValues::IsSo(const JournalRecord& record) const {
  const StatusOr<std::string> wanted = Wanted(record);
  const StatusOr<std::string> now = files_.Read(record.path);
  return record.is_settled && wanted.ok() && now.ok() && IsSameValue(record.form, *now, *wanted);
}

bool KernelValues::Holds(const std::string& owner, const std::vector<Claim>& claims) const {
  return std::ranges::all_of(claims, [&](const Claim& claim) {
    return std::ranges::any_of(records_, [&](const JournalRecord& record) {
      const auto held = record.claims.find(owner);
      return record.path == claim.path && held != record.claims.end() &&
             held->second == claim.value && IsSo(record);
    });
  });
}

Status KernelValues::Release(const std::string& owner) {
  return ReleaseAllBut(owner, {});
}

Status KernelValues::ReleaseAllBut(const std::string& owner, const std::vector<Claim>& claims) {
  std::set<std::string> kept;
  for (const Claim& claim : claims) {
    kept.insert(claim.path);
  }
  std::vector<std::string> paths;
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    const bool is_dropped = !kept.contains(record->path) && record->claims.erase(owner) > 0;
    if (is_dropped || record->claims.empty()) {
      paths.push_back(record->path);
    }
  }
  return SettleAll(paths);
}

Status KernelValues::ReleaseFile(const std::string& path) {
  JournalRecord* const record = Find(path);
  if (record == nullptr) {
    return OkStatus();
  }
  record->claims.clear();
  return SettleAll({path});
}

Status KernelValues::KeepOnly(const std::set<std::string>& living) {
  std::vector<std::string> ended;
  std::vector<std::string> kept;
  for (JournalRecord& record : records_) {
    std::erase_if(record.claims, [&](const auto& claim) { return !living.contains(claim.first); });
    (record.claims.empty() ? ended : kept).push_back(record.path);
  }
  std::vector<std::string> paths(ended.rbegin(), ended.rend());
  paths.insert(paths.end(), kept.begin(), kept.end());
  return SettleAll(paths);
}

}  // namespace qrm::kernel
