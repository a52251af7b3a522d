// Moves a database aside, to make room for a new one and to keep the old one for inspection.
#include <cerrno>
#include <chrono>
#include <ctime>

#include <sys/stat.h>

#include <fmt/chrono.h>

#include "checkpoint/sqlite/durable_file.h"
#include "checkpoint/sqlite/sqlite_db.h"

namespace qrm::checkpoint {
namespace {

bool IsTaken(const std::string& path) {
  struct stat file = {};
  return ::lstat(path.c_str(), &file) == 0;
}

/// A name that is free for the database and for its log.
std::string FreeName(const std::string& path) {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  const std::string base = fmt::format("{}.aside-{:%Y%m%dT%H%M%SZ}", path, fmt::gmtime(now));
  std::string name = base;
  for (int i = 2; IsTaken(name) || IsTaken(name + "-wal"); ++i) {
    name = fmt::format("{}.{}", base, i);
  }
  return name;
}

}  // namespace

StatusOr<std::string> MoveAside(const std::string& path) {
  std::string aside = FreeName(path);
  // The database goes first: a crash between the renames leaves a log without one, which Open
  // moves aside as well.
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    if (IsTaken(path + suffix)) {
      QRM_RETURN_IF_ERROR(RenameDurably(path + suffix, aside + suffix));
    }
  }
  return aside;
}

}  // namespace qrm::checkpoint
