// Translates SQLite's error codes, and prefers the kernel's error number where there is one, since
// it says more.
#include "checkpoint/sqlite/sqlite_error.h"

#include <cerrno>
#include <system_error>

#include <sqlite3.h>
#include <unistd.h>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"

namespace qrm::checkpoint {
namespace {

struct Diagnosis {
  StatusCode code;
  std::string_view cause;  ///< empty: SQLite's or the kernel's own words
  std::string_view remedy;
};

constexpr Diagnosis kFullDisk = {StatusCode::kResourceExhausted, "the disk is full",
                                 "free space on its file system"};
constexpr Diagnosis kReadOnly = {StatusCode::kFailedPrecondition, "",
                                 "mount its file system writable (dmesg shows errors of the disk)"};
constexpr Diagnosis kNoRight = {StatusCode::kFailedPrecondition, "",
                                "make its directory writable for this user, or try as root"};
constexpr Diagnosis kNoRightOfRoot = {
    StatusCode::kFailedPrecondition, "",
    "make its directory writable: look for attributes (lsattr) and for the rules of AppArmor or "
    "SELinux"};
constexpr Diagnosis kNoPlace = {StatusCode::kFailedPrecondition, "",
                                "correct the path or make its directory"};
constexpr Diagnosis kDamaged = {StatusCode::kDataLoss, "",
                                "move it aside and restart, or restore a copy"};
constexpr Diagnosis kHeld = {StatusCode::kUnavailable, "another process holds it",
                             "end that process"};
constexpr Diagnosis kDevice = {StatusCode::kUnavailable, "",
                               "check the disk (dmesg) and try again"};
constexpr Diagnosis kBug = {StatusCode::kInternal, "", "report this as a bug"};

const Diagnosis* FromErrno(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return &kFullDisk;
    case EROFS:
      return &kReadOnly;
    case EACCES:
    case EPERM:
      return ::geteuid() == 0 ? &kNoRightOfRoot : &kNoRight;
    case ENOENT:
    case ENOTDIR:
      return &kNoPlace;
    default:
      return nullptr;
  }
}

const Diagnosis& FromSqlite(int code, int error_number) {
  if (code == SQLITE_IOERR_SHORT_READ || code == SQLITE_IOERR_CORRUPTFS) {
    return kDamaged;
  }
  switch (code & 0xff) {
    case SQLITE_FULL:
      return kFullDisk;
    case SQLITE_READONLY:  // SQLite keeps no error number for these
    case SQLITE_PERM:
      return ::geteuid() == 0 ? kReadOnly : kNoRight;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
    case SQLITE_SCHEMA:
      return kDamaged;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return kHeld;
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN: {
      const Diagnosis* known = FromErrno(error_number);
      return known != nullptr ? *known : kDevice;
    }
    default:
      return kBug;
  }
}

Status Sentence(const Diagnosis& diagnosis, std::string_view verb, const std::string& path,
                std::string_view words) {
  return Errorf(diagnosis.code, "cannot {} {}: {}; {}", verb, path,
                diagnosis.cause.empty() ? Quoted(words) : std::string(diagnosis.cause),
                diagnosis.remedy);
}

}  // namespace

Status SqliteError(sqlite3* db, int code, std::string_view verb, const std::string& path) {
  const int error_number = db != nullptr ? sqlite3_system_errno(db) : 0;
  const Diagnosis& diagnosis = FromSqlite(code, error_number);
  std::string words = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const int primary = code & 0xff;
  if (error_number != 0 && (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN)) {
    words = std::system_category().message(error_number);
  }
  return Sentence(diagnosis, verb, path, words);
}

Status SystemError(int error_number, std::string_view verb, const std::string& path) {
  const Diagnosis* known = FromErrno(error_number);
  return Sentence(known != nullptr ? *known : kDevice, verb, path,
                  std::system_category().message(error_number));
}

}  // namespace qrm::checkpoint
