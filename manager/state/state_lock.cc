// Locks a file of the state directory with flock(2).
#include "manager/state/state_lock.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "api/base/errorf.h"
#include "api/base/log.h"

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

}  // namespace

StatusOr<StateLock> StateLock::Take(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::create_directories(directory, error)) {
    std::filesystem::permissions(directory, std::filesystem::perms::owner_all, error);
  }
  const std::string path = directory + "/qrmd.lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) {
    log::Warning("state directory not locked", {{"path", path}, {"error", std::strerror(errno)}});
    return StateLock(-1);
  }
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    const std::string holder = HolderOf(fd);
    ::close(fd);
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot use {}: {} uses it; stop that one or set another state-dir", directory,
                  holder);
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
