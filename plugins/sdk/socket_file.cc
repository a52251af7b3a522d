// Claims a socket's name with renameat2(2) and RENAME_NOREPLACE, and replaces a socket without a
// server.
#include "plugins/sdk/socket_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/base/errorf.h"
#include "api/base/unix_socket.h"

namespace qrm::sdk {
namespace {

constexpr int kPlaceAttempts = 3;

Status CheckLength(const std::string& path) {
  if (path.size() > kMaxSocketPath) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot create socket {}: its path has {} letters, at most {} are possible; "
                  "choose a shorter directory",
                  path, path.size(), kMaxSocketPath);
  }
  return OkStatus();
}

/// Removes the socket at `path` if no process listens on it.
Status ClearDeadSocket(const std::string& path) {
  struct stat file{};
  if (::lstat(path.c_str(), &file) != 0) {
    return OkStatus();
  }
  if (!S_ISSOCK(file.st_mode)) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot create socket {}: another kind of file exists there; remove it", path);
  }
  const int error = ProbeSocket(path);
  if (error == 0) {
    return Errorf(
        StatusCode::kAlreadyExists,
        "cannot create socket {}: another process listens there; stop it or set --socket-name",
        path);
  }
  if (error != ECONNREFUSED && error != ENOENT) {
    return Errorf(StatusCode::kFailedPrecondition, "cannot probe socket {}: {}; remove the file",
                  path, std::strerror(error));
  }
  ::unlink(path.c_str());
  return OkStatus();
}

}  // namespace

std::optional<FileId> FindFile(const std::string& path) {
  struct stat file{};
  if (::lstat(path.c_str(), &file) != 0) {
    return std::nullopt;
  }
  return FileId{
      .device = file.st_dev,
      .inode = file.st_ino,
      .modified_nanos = int64_t{file.st_mtim.tv_sec} * 1'000'000'000 + file.st_mtim.tv_nsec};
}

StatusOr<std::string> TemporarySocketPath(const std::string& path) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!std::filesystem::is_directory(directory, error)) {
    return Errorf(StatusCode::kNotFound,
                  "cannot create socket {}: no directory {}; start qrmd, which creates it", path,
                  directory.string());
  }
  std::string temporary = directory / fmt::format(".{:08x}", std::random_device()());
  QRM_RETURN_IF_ERROR(CheckLength(path));
  QRM_RETURN_IF_ERROR(CheckLength(temporary));
  return temporary;
}

Status PlaceSocket(const std::string& temporary, const std::string& path) {
  for (int attempt = 0; attempt < kPlaceAttempts; ++attempt) {
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0) {
      return OkStatus();
    }
    if (errno != EEXIST) {
      return Errorf(StatusCode::kFailedPrecondition, "cannot create socket {}: {}", path,
                    std::strerror(errno));
    }
    QRM_RETURN_IF_ERROR(ClearDeadSocket(path));
  }
  return Errorf(
      StatusCode::kAlreadyExists,
      "cannot create socket {}: another process keeps recreating it; stop it or set --socket-name",
      path);
}

}  // namespace qrm::sdk
