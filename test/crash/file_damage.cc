// One function for each kind of damage.
#include "test/crash/file_damage.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include <sqlite3.h>

#include "api/base/errorf.h"

namespace qrm::test {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPageBytes = 4096;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Status WriteFile(const std::string& path, const std::string& content) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);  // the same inode
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.flush();
  return file ? OkStatus() : Errorf(StatusCode::kInternal, "cannot damage {}", path);
}

Status ToStatus(const std::error_code& error, const std::string& path) {
  return error ? Errorf(StatusCode::kInternal, "cannot damage {}: {}", path, error.message())
               : OkStatus();
}

Status Resize(const std::string& path, std::size_t size) {
  std::error_code error;
  fs::resize_file(path, size, error);
  return ToStatus(error, path);
}

}  // namespace

struct FileDamage::Kind {
  const char* what;
  const char* suffix;  // of the file
  Way way;
  bool forbids = false;
};

const FileDamage::Kind FileDamage::kKinds[] = {
    {"bits of the database flipped", "", &FileDamage::Flip},
    {"bits of the log flipped", "-wal", &FileDamage::Flip},
    {"database truncated", "", &FileDamage::Truncate},
    {"log truncated", "-wal", &FileDamage::Truncate},
    {"page of the database zeroed", "", &FileDamage::ZeroPage},
    {"page of the log zeroed", "-wal", &FileDamage::ZeroPage},
    {"database missing", "", &FileDamage::Remove},
    {"log missing", "-wal", &FileDamage::Remove},
    {"database empty", "", &FileDamage::Empty},
    {"database a directory", "", &FileDamage::BecomeDirectory},
    {"log a directory", "-wal", &FileDamage::BecomeDirectory},
    {"database another program's", "", &FileDamage::BecomeForeign},
    {"header of a newer schema", "", &FileDamage::BecomeNewer},
    {"no permission for the database", "", &FileDamage::Forbid, true},
};

StatusOr<DamageReport> FileDamage::Apply(const std::string& database, int round) {
  const Kind& kind = kKinds[static_cast<std::size_t>(round) % std::size(kKinds)];
  QRM_RETURN_IF_ERROR((this->*kind.way)(database + kind.suffix));
  return DamageReport{.what = kind.what, .forbidden = kind.forbids};
}

Status FileDamage::Flip(const std::string& path) {
  std::string content = ReadFile(path);
  const std::size_t count = std::size_t{1} << Draw(8);
  for (std::size_t i = 0; i < count && !content.empty(); ++i) {
    char& byte = content[Draw(content.size())];
    byte = static_cast<char>(byte ^ static_cast<char>(1U << Draw(8)));
  }
  return WriteFile(path, content);
}

Status FileDamage::Truncate(const std::string& path) {
  return Resize(path, Draw(ReadFile(path).size() + 1));
}

Status FileDamage::ZeroPage(const std::string& path) {
  std::string content = ReadFile(path);
  const std::size_t at = Draw(content.size() / kPageBytes + 1) * kPageBytes;
  for (std::size_t i = at; i < content.size() && i < at + kPageBytes; ++i) {
    content[i] = '\0';
  }
  return WriteFile(path, content);
}

Status FileDamage::Remove(const std::string& path) {
  std::error_code error;
  fs::remove(path, error);
  return ToStatus(error, path);
}

Status FileDamage::Empty(const std::string& path) {
  return Resize(path, 0);
}

Status FileDamage::BecomeDirectory(const std::string& path) {
  QRM_RETURN_IF_ERROR(Remove(path));
  std::error_code error;
  fs::create_directory(path, error);
  return ToStatus(error, path);
}

Status FileDamage::BecomeForeign(const std::string& path) {
  QRM_RETURN_IF_ERROR(Resize(path, 0));
  return WriteFile(path,
                   "{\"policyName\":\"none\",\"defaultCpuSet\":\"\",\"checksum\":1353318690}");
}

Status FileDamage::BecomeNewer(const std::string& path) {
  sqlite3* database = nullptr;
  int code = sqlite3_open(path.c_str(), &database);
  if (code == SQLITE_OK) {
    code = sqlite3_exec(database, "PRAGMA user_version=99", nullptr, nullptr, nullptr);
  }
  sqlite3_close(database);
  return code == SQLITE_OK
             ? OkStatus()
             : Errorf(StatusCode::kInternal, "cannot damage {}: {}", path, sqlite3_errstr(code));
}

Status FileDamage::Forbid(const std::string& path) {
  forbidden_ = path;
  std::error_code error;
  fs::permissions(path, fs::perms::none, error);
  return ToStatus(error, path);
}

Status FileDamage::Undo() {
  if (forbidden_.empty()) {
    return OkStatus();
  }
  std::error_code error;
  fs::permissions(forbidden_, fs::perms::owner_read | fs::perms::owner_write, error);
  return ToStatus(error, std::exchange(forbidden_, {}));
}

}  // namespace qrm::test
