// Probes unix sockets by their paths.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <sys/un.h>

namespace qrm {

/// As many letters as a socket's path may have. Source: unix(7), sun_path.
inline constexpr std::size_t kMaxSocketPath = sizeof(sockaddr_un::sun_path) - 1;

/// The address of the socket at `path`; nothing for a path that no socket can have.
std::optional<sockaddr_un> SocketAddress(const std::string& path);

/// 0 when a process listens on the socket at `path`, even with a full queue; else the errno:
/// ENOENT without a file, ECONNREFUSED for the socket of a dead process.
int ProbeSocket(const std::string& path);

}  // namespace qrm
