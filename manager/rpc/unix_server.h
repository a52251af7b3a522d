// A gRPC server on a unix socket that knows which process is at the other end.
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

/// Who connected, as the kernel says. A process in a PID namespace that we cannot see has pid 0.
/// Source: unix(7), SO_PEERCRED.
struct PeerCredentials {
  pid_t pid = 0;
  uid_t uid = 0;

  auto operator<=>(const PeerCredentials&) const = default;
};

/// How many connections a server keeps and takes; further ones are closed at once.
struct ConnectionLimits {
  std::size_t total = 1024;
  std::size_t per_user = 512;     ///< so that one user cannot take all
  std::size_t per_process = 128;  ///< so that one client of a user cannot
  /// New ones a second, of one process after a burst of per_process, of one user four times as
  /// many; 0: any number. To open one costs the server more than to use it.
  int per_second = 0;
};

struct UnixServerOptions {
  mode_t socket_mode = 0660;
  mode_t directory_mode = 0750;  ///< of the socket's directory, when it has to be made
  std::optional<gid_t> group;    ///< owner of both; absent: as the process
  /// Who may connect; empty: whoever may open the file. Others are disconnected before their first
  /// byte is read.
  std::vector<uid_t> allowed_uids;
  int max_request_bytes = 64 << 10;  ///< longer ones are refused when they are complete
  ConnectionLimits connections;
};

/// The connection that `grpc_peer`, the text of ServerContext::peer(), names; -1 for one that is
/// not ours.
int DescriptorOf(std::string_view grpc_peer);

/// Accepts connections itself and hands them to gRPC, which alone could neither tell peers apart
/// nor put the socket in place atomically.
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
  /// it is ready to accept; a dead one is replaced. Errors: kFailedPrecondition when a live server
  /// listens there, kInvalidArgument for a path that no socket can have, kPermissionDenied or
  /// kInternal when the file system refuses.
  Status Start(const std::string& socket_path, const std::vector<grpc::Service*>& services);

  /// Refuses new calls, gives running ones a second, and removes the socket if it is still ours.
  void Stop();

  /// The process behind `grpc_peer`, the text of ServerContext::peer(). Absent once it is gone.
  std::optional<PeerCredentials> FindPeer(const std::string& grpc_peer) const;

  /// Ends the connection behind `grpc_peer`. To be called while a call of it is being served.
  void Disconnect(const std::string& grpc_peer);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
