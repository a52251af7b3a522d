// A gRPC server on a Unix socket that knows which process is at the other end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "api/base/status.h"

namespace grpc {
class Service;
}

namespace qrm::manager {

/// The connected process, as the kernel reports it. A process in a PID namespace that is not
/// visible has pid 0.
/// Source: unix(7), SO_PEERCRED.
struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;

  auto operator<=>(const PeerCredentials&) const = default;
};

/// The process that is connected to `fd`. Source: unix(7), SO_PEERCRED.
StatusOr<PeerCredentials> PeerOf(int fd);

/// How many connections a server keeps and accepts; further connections are closed at once.
struct ConnectionLimits {
  std::size_t total = 1024;
  std::size_t per_user = 512;     ///< so that one user cannot take all
  std::size_t per_process = 128;  ///< so that one process cannot take all of its user's
  /// New connections a second of one process, after a burst of per_process. One user may open four
  /// times as many. 0: no limit. Opening a connection costs the server more than using it.
  int per_second = 0;
};

struct UnixServerOptions {
  mode_t socket_mode = 0660;
  mode_t directory_mode = 0750;  ///< of the socket's directory, if it must be created
  std::optional<gid_t> group;    ///< owner of both; absent: as the process
  /// The users that may connect; empty: all users that may open the file. Other users are
  /// disconnected before their first byte is read.
  std::vector<uid_t> allowed_uids;
  int max_request_bytes = 64 << 10;  ///< longer requests are rejected when they are complete
  ConnectionLimits connections;
};

/// The descriptor in `grpc_peer`, the text of ServerContext::peer(); -1 for a connection of another
/// kind.
int DescriptorOf(std::string_view grpc_peer);

/// Accepts connections itself and hands them to gRPC. gRPC's own listener can neither identify
/// peers nor create the socket atomically.
///
/// Threads: Start and Stop from one thread; FindPeer and Disconnect from any.
class UnixServer {
 public:
  explicit UnixServer(UnixServerOptions options);
  /// Stops.
  ~UnixServer();
  UnixServer(const UnixServer&) = delete;
  UnixServer& operator=(const UnixServer&) = delete;

  /// Serves `services`, which outlive the server, on `socket_path`. The socket appears there when
  /// it is ready to accept; a dead socket is replaced. Errors: kFailedPrecondition when a live
  /// server listens there, kInvalidArgument for a path that no socket can have, kPermissionDenied
  /// or kInternal for errors of the file system.
  Status Start(const std::string& socket_path, const std::vector<grpc::Service*>& services);

  /// Rejects new calls, gives running calls a second, and removes the socket's file if it still
  /// belongs to this server.
  void Stop();

  /// The process behind `grpc_peer`, the text of ServerContext::peer(). Absent after it has
  /// disconnected.
  std::optional<PeerCredentials> FindPeer(const std::string& grpc_peer) const;

  /// Closes the connection behind `grpc_peer`. Call it while one of its calls is being served.
  void Disconnect(const std::string& grpc_peer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
