// Probes sockets with connect(2), which distinguishes a socket without server from a busy one.
#include "api/base/unix_socket.h"

#include <cerrno>

#include <sys/socket.h>
#include <unistd.h>

namespace qrm {

std::optional<sockaddr_un> SocketAddress(const std::string& path) {
  if (path.empty() || path.size() > kMaxSocketPath) {
    return std::nullopt;
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, kMaxSocketPath);
  return address;
}

int ProbeSocket(const std::string& path) {
  const std::optional<sockaddr_un> address = SocketAddress(path);
  if (!address.has_value()) {
    return path.empty() ? ENOENT : ENAMETOOLONG;
  }
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (probe < 0) {
    return errno;
  }
  const int result =
      ::connect(probe, reinterpret_cast<const sockaddr*>(&*address), sizeof(*address));
  const int error = result == 0 ? 0 : errno;
  ::close(probe);
  return error == EAGAIN || error == EINPROGRESS ? 0 : error;  // EAGAIN: its queue is full
}

}  // namespace qrm
