// Copies a database together with its log, which holds the latest commits.
#include "checkpoint/sqlite/sqlite_copy.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "api/base/errorf.h"
#include "checkpoint/sqlite/sqlite_error.h"

namespace qrm::checkpoint {
namespace {

namespace fs = std::filesystem;

/// A private directory that goes with its owner.
class Scratch {
 public:
  static StatusOr<Scratch> Make() {
    std::error_code ignored;
    for (const fs::path& parent : {fs::path("/dev/shm"), fs::temp_directory_path(ignored)}) {
      std::string name = (parent / "qrm-checkpoint.XXXXXX").string();
      if (::mkdtemp(name.data()) != nullptr) {
        return Scratch(std::move(name));
      }
    }
    return SystemError(errno, "make a copy in", "/dev/shm");
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Scratch& operator=(Scratch&&) = delete;

  std::string operator/(std::string_view name) const { return fmt::format("{}/{}", path_, name); }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace

Status ReadCopy(const std::string& path, const SqliteSchema& schema,
                const std::function<Status(SqliteDb&)>& load) {
  std::error_code error;
  const bool is_file = fs::is_regular_file(path, error);
  if (error && error != std::errc::no_such_file_or_directory &&
      error != std::errc::not_a_directory) {
    return SystemError(error.value(), "read", path);
  }
  if (!is_file) {
    return Errorf(StatusCode::kNotFound, "cannot read {}: there is no such file; begin with none",
                  path);
  }
  QRM_ASSIGN_OR_RETURN(const Scratch scratch, Scratch::Make());
  const std::string copy = scratch / "copy.db";
  fs::copy_file(path, copy, error);
  if (!error && fs::exists(path + "-wal", error)) {
    fs::copy_file(path + "-wal", copy + "-wal", error);
  }
  if (error) {
    return SystemError(error.value(), "copy", path);
  }
  QRM_ASSIGN_OR_RETURN(SqliteDb db, SqliteDb::Open(copy, schema));
  return load(db);
}

}  // namespace qrm::checkpoint
