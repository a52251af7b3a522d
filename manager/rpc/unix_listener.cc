// Binds to a temporary name and renames it, so that no client finds a socket that is not ready.
#include "manager/rpc/unix_listener.h"

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/base/errorf.h"
#include "api/base/unix_socket.h"

namespace qrm::manager {
namespace {

/// Connections that wait for Accept, up to the kernel's own limit (net.core.somaxconn). Connecting
/// to a Unix socket whose queue is full fails at once, so a flood could lock other clients out.
constexpr int kBacklog = 4096;
constexpr int kOutOfDescriptorsPauseMs = 100;

std::string ErrnoText(int error) {
  return std::generic_category().message(error);
}

Status SystemError(const std::string& path, std::string_view what, int error,
                   std::string_view remedy) {
  const StatusCode code =
      error == EACCES || error == EPERM ? StatusCode::kPermissionDenied : StatusCode::kInternal;
  return Errorf(code, "cannot listen on {}: {}: {}; {}", path, what, ErrnoText(error), remedy);
}

StatusOr<sockaddr_un> AddressOf(const std::string& path) {
  const std::optional<sockaddr_un> address = SocketAddress(path);
  if (!address.has_value()) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot listen on \"{}\": socket paths have 1 to {} characters; choose another "
                  "path",
                  path, kMaxSocketPath);
  }
  return *address;
}

}  // namespace

UnixListener::~UnixListener() {
  if (fd_ < 0) {
    return;
  }
  struct stat now{};
  if (placed_ && stat(path_.c_str(), &now) == 0 && now.st_ino == inode_) {
    unlink(path_.c_str());
  }
  close(fd_);
}

Status UnixListener::Open(const std::string& path, const UnixServerOptions& options) {
  path_ = path;
  QRM_RETURN_IF_ERROR(AddressOf(path).status());
  QRM_RETURN_IF_ERROR(MakeDirectory(options));
  if (ProbeSocket(path) == 0) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot listen on {}: a live server listens there; stop the other qrmd or choose "
                  "another path",
                  path);
  }
  const std::string temporary = path + "~";
  QRM_RETURN_IF_ERROR(BindAndListen(temporary, options));
  struct stat made{};
  if (stat(temporary.c_str(), &made) != 0 || rename(temporary.c_str(), path.c_str()) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return SystemError(path, "rename", error, "make the directory writable");
  }
  inode_ = made.st_ino;
  placed_ = true;
  return OkStatus();
}

Status UnixListener::MakeDirectory(const UnixServerOptions& options) const {
  const std::filesystem::path directory = std::filesystem::path(path_).parent_path();
  std::error_code error;
  const bool made = std::filesystem::create_directories(directory, error);
  if (error) {
    return SystemError(path_, "mkdir " + directory.string(), error.value(),
                       "make the parent directory writable");
  }
  if (made && chmod(directory.c_str(), options.directory_mode) != 0) {
    return SystemError(path_, "chmod " + directory.string(), errno, "run as its owner");
  }
  if (options.group.has_value() &&
      chown(directory.c_str(), static_cast<uid_t>(-1), *options.group) != 0) {
    return SystemError(path_, "chgrp " + directory.string(), errno, "run as root");
  }
  return OkStatus();
}

Status UnixListener::BindAndListen(const std::string& temporary, const UnixServerOptions& options) {
  QRM_ASSIGN_OR_RETURN(const sockaddr_un address, AddressOf(temporary));
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) {
    return SystemError(path_, "socket", errno, "raise the limit of open files");
  }
  unlink(temporary.c_str());
  // A mode set before bind applies to the file from the start (less the umask).
  if (fchmod(fd_, options.socket_mode) != 0 ||
      bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return SystemError(path_, "bind", errno, "make the directory writable");
  }
  const bool group_ok = !options.group.has_value() ||
                        chown(temporary.c_str(), static_cast<uid_t>(-1), *options.group) == 0;
  if (!group_ok || chmod(temporary.c_str(), options.socket_mode) != 0 ||
      listen(fd_, kBacklog) != 0) {
    const int error = errno;
    unlink(temporary.c_str());
    return SystemError(path_, "listen", error, "run as root");
  }
  return OkStatus();
}

int UnixListener::Accept() {
  spares_.Refill();
  while (true) {
    const int connection = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0) {
      return connection;
    }
    switch (errno) {
      case EMFILE:
      case ENFILE:
      case ENOMEM:
      case ENOBUFS:
        if (!spares_.Release()) {
          poll(nullptr, 0, kOutOfDescriptorsPauseMs);
        }
        break;
      case EINTR:
      case ECONNABORTED:
        break;
      default:  // EINVAL after Shutdown
        return -1;
    }
  }
}

void UnixListener::Shutdown() const {
  if (fd_ >= 0) {
    shutdown(fd_, SHUT_RDWR);
  }
}

StatusOr<PeerCredentials> PeerOf(int fd) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return Errorf(StatusCode::kInternal, "cannot identify the client: {}; connect again",
                  ErrnoText(errno));
  }
  return PeerCredentials{.pid = credentials.pid, .uid = credentials.uid};
}

}  // namespace qrm::manager
