// Makes every name durable by syncing the directory that holds it, since a file's own fsync does
// not.
#include "checkpoint/sqlite/durable_file.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/chrono.h>

#include "api/base/file_descriptor.h"
#include "checkpoint/sqlite/sqlite_error.h"

namespace qrm::checkpoint {
namespace {

constexpr mode_t kOwnerOnlyDirectory = 0700;
constexpr mode_t kOwnerOnlyFile = 0600;

Status SyncDirectory(const std::string& directory) {
  const FileDescriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) {
    return SystemError(errno, "sync", directory);
  }
  return OkStatus();
}

Status WriteAll(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno != EINTR) {
      return SystemError(errno, "write", path);
    }
    content.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  return OkStatus();
}

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

std::string DirectoryOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) {
    return ".";
  }
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status MakeDurableDirectory(const std::string& directory) {
  if (::mkdir(directory.c_str(), kOwnerOnlyDirectory) == 0) {
    return SyncDirectory(DirectoryOf(directory));
  }
  if (errno == EEXIST) {
    return OkStatus();
  }
  if (errno != ENOENT || DirectoryOf(directory) == directory) {
    return SystemError(errno, "make directory", directory);
  }
  QRM_RETURN_IF_ERROR(MakeDurableDirectory(DirectoryOf(directory)));
  if (::mkdir(directory.c_str(), kOwnerOnlyDirectory) != 0 && errno != EEXIST) {
    return SystemError(errno, "make directory", directory);
  }
  return SyncDirectory(DirectoryOf(directory));
}

Status MakePrivateFile(const std::string& path) {
  const FileDescriptor fd(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerOnlyFile));
  return fd.get() >= 0 ? OkStatus() : SystemError(errno, "make", path);
}

Status RemoveFile(const std::string& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return SystemError(errno, "remove", path);
  }
  return OkStatus();
}

Status RenameDurably(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    return SystemError(errno, "rename", from);
  }
  return SyncDirectory(DirectoryOf(to));
}

Status WriteFileDurably(const std::string& path, const std::string& content) {
  const std::string unfinished = path + ".new";
  ::unlink(unfinished.c_str());  // in case another process left a link there
  {
    const FileDescriptor fd(
        ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerOnlyFile));
    if (fd.get() < 0) {
      return SystemError(errno, "make", unfinished);
    }
    QRM_RETURN_IF_ERROR(WriteAll(fd.get(), content, unfinished));
    if (::fsync(fd.get()) != 0) {
      return SystemError(errno, "sync", unfinished);
    }
  }
  return RenameDurably(unfinished, path);
}

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
