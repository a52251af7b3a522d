// Locks a file of the state directory with flock(2).
#include "manager/state/state_lock.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "api/base/errorf.h"
#include "api/base/file_descriptor.h"
#include "api/base/log.h"
#include "checkpoint/sqlite/durable_file.h"

namespace qrm::manager {
namespace {

std::string HolderOf(int fd) {
  std::array<char, 32> text{};
  const ssize_t size = ::pread(fd, text.data(), text.size() - 1, 0);
  const std::string pid(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return pid.empty() ? "another qrmd" : "the qrmd with pid " + pid;
}

void WritePid(int fd) {
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd, 0) != 0 || ::pwrite(fd, pid.data(), pid.size(), 0) < 0) {
    log::Warning("pid not written to the lock file", {{"error", std::strerror(errno)}});
  }
}

/// OK when only root and qrmd's own user can write in `directory`; removes the permissions of
/// others if possible. Errors: kFailedPrecondition when qrmd must not change the directory.
Status CloseToOthers(const std::string& directory) {
  const FileDescriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info = {};
  if (fd.get() < 0 || ::fstat(fd.get(), &info) != 0) {
    return OkStatus();  // opening the lock file reports the cause
  }
  if (info.st_uid != 0 && info.st_uid != ::geteuid()) {
    return Errorf(
        StatusCode::kFailedPrecondition,
        "cannot use {}: it belongs to user {}, who could change the checkpoint; run chown "
        "root, or set another state-dir",
        directory, info.st_uid);
  }
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
    return OkStatus();
  }
  const std::string mode = fmt::format("{:o}", info.st_mode & 07777U);
  if (info.st_uid != ::geteuid() || (info.st_mode & S_ISVTX) != 0) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot use {}: other users may write there (mode {}) and could change the "
                  "checkpoint; set another state-dir, such as /var/lib/qrm/state",
                  directory, mode);
  }
  if (::fchmod(fd.get(), S_IRWXU) == 0) {
    log::Warning("state directory closed to other users",
                 {{"path", directory}, {"former_mode", mode}});
  } else {
    log::Warning("cannot close the state directory to other users",
                 {{"path", directory}, {"mode", mode}, {"error", std::strerror(errno)}});
  }
  return OkStatus();
}

/// Otherwise a user could plant a link at `path` and make qrmd overwrite the link's target.
void MoveAsideWhatIsNoLock(const std::string& path) {
  struct stat info = {};
  if (::lstat(path.c_str(), &info) != 0 || (S_ISREG(info.st_mode) && info.st_nlink == 1)) {
    return;
  }
  if (const StatusOr<std::string> aside = checkpoint::MoveAside(path); aside.ok()) {
    log::Warning("lock of the state directory moved aside",
                 {{"error", fmt::format("cannot lock {}: it is a link or not a regular file; find "
                                        "out which process created it, and remove {}",
                                        path, *aside)}});
  }
}

}  // namespace

StatusOr<StateLock> StateLock::Take(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::create_directories(directory, error)) {
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all, error);
  }
  QRM_RETURN_IF_ERROR(CloseToOthers(directory));
  const std::string path = directory + "/qrmd.lock";
  MoveAsideWhatIsNoLock(path);
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (fd < 0) {
    log::Warning("state directory not locked", {{"path", path}, {"error", std::strerror(errno)}});
    return StateLock(-1);
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const std::string holder = HolderOf(fd);
    ::close(fd);
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot use {}: {} uses it; stop that process or set another state-dir",
                  directory, holder);
  }
  WritePid(fd);
  return StateLock(fd);
}

StateLock::~StateLock() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

}  // namespace qrm::manager
