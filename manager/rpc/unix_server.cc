// Accepts connections on one thread, checks the peer and hands them to a gRPC server without ports.
#include "manager/rpc/unix_server.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include "api/base/errorf.h"
#include "api/base/number.h"
#include "api/base/rejected.h"
#include "api/rpc/grpc_lifetime.h"
#include "api/rpc/request_bounds.h"
#include "manager/rpc/guarded_reads.h"
#include "manager/rpc/header_guard.h"
#include "manager/rpc/peer_table.h"
#include "manager/rpc/unix_listener.h"

namespace qrm::manager {
namespace {

constexpr std::chrono::seconds kStopGrace{1};
/// The limit of kubelet's clients.
constexpr int kMaxAnswerBytes = 16 << 20;
constexpr int kIdleConnectionMs = 10 * 60 * 1000;
/// The prefix of gRPC's name for the peer of a connection that was handed to it as a descriptor.
constexpr std::string_view kPeerPrefix = "fd:";

std::unique_ptr<grpc::Server> BuildServer(const UnixServerOptions& options,
                                          const std::vector<grpc::Service*>& services) {
  KeepGrpcCallbackThreads();
  grpc::ServerBuilder builder;
  rpc::BoundRequests(builder, options.max_request_bytes);
  builder.SetMaxSendMessageSize(kMaxAnswerBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, HeaderGuard::kMaxCalls);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMs);
  // HeaderGuard limits pings. gRPC's own limit also counts pings of idle clients, and costs 3 KiB
  // for each ping beyond two.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  for (grpc::Service* service : services) {
    builder.RegisterService(service);
  }
  return builder.BuildAndStart();
}

bool IsAllowed(const UnixServerOptions& options, uid_t uid) {
  const std::vector<uid_t>& allowed = options.allowed_uids;
  return allowed.empty() || std::find(allowed.begin(), allowed.end(), uid) != allowed.end();
}

}  // namespace

int DescriptorOf(std::string_view grpc_peer) {
  const bool known = grpc_peer.substr(0, kPeerPrefix.size()) == kPeerPrefix;
  return known ? ParseNumber<int>(grpc_peer.substr(kPeerPrefix.size())).value_or(-1) : -1;
}

struct UnixServer::Impl {
  explicit Impl(UnixServerOptions server_options)
      : options(std::move(server_options)), peers(options.connections) {}

  Status Admit(int connection) {
    QRM_ASSIGN_OR_RETURN(const PeerCredentials peer, PeerOf(connection));
    if (!IsAllowed(options, peer.uid)) {
      return Errorf(
          StatusCode::kPermissionDenied,
          "cannot serve process {} of user {}: its user may not use this socket; run it as root",
          peer.pid, peer.uid);
    }
    return peers.Add(connection, peer, std::chrono::steady_clock::now());
  }

  void AcceptUntilShutdown() {
    for (int connection = listener->Accept(); connection >= 0; connection = listener->Accept()) {
      if (const Status admitted = Admit(connection); !admitted.ok()) {
        const bool known = admitted.code() != StatusCode::kPermissionDenied;
        Reject(known ? Rejected::kSocketConnections : Rejected::kSocketUser,
               fmt::format("{} ({})", MessageOf(admitted), path));
        close(connection);
        continue;
      }
      GuardReads(connection);
      grpc::AddInsecureChannelFromFd(server.get(), connection);
    }
  }

  const UnixServerOptions options;
  std::string path;
  PeerTable peers;
  std::unique_ptr<UnixListener> listener;
  std::unique_ptr<grpc::Server> server;
  std::thread acceptor;
};

UnixServer::UnixServer(UnixServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

UnixServer::~UnixServer() {
  Stop();
}

Status UnixServer::Start(const std::string& socket_path,
                         const std::vector<grpc::Service*>& services) {
  auto listener = std::make_unique<UnixListener>();
  QRM_RETURN_IF_ERROR(listener->Open(socket_path, impl_->options));
  impl_->server = BuildServer(impl_->options, services);
  if (impl_->server == nullptr) {
    return Errorf(StatusCode::kInternal, "cannot serve {}: gRPC did not start; see its log",
                  socket_path);
  }
  impl_->path = socket_path;
  impl_->listener = std::move(listener);
  impl_->acceptor = std::thread([this] { impl_->AcceptUntilShutdown(); });
  return OkStatus();
}

void UnixServer::Stop() {
  if (impl_->server == nullptr) {
    return;
  }
  impl_->listener->Shutdown();
  impl_->acceptor.join();
  impl_->listener.reset();
  impl_->server->Shutdown(std::chrono::system_clock::now() + kStopGrace);
  impl_->server->Wait();
  impl_->server.reset();
}

std::optional<PeerCredentials> UnixServer::FindPeer(const std::string& grpc_peer) const {
  return impl_->peers.Find(DescriptorOf(grpc_peer));
}

void UnixServer::Disconnect(const std::string& grpc_peer) {
  impl_->peers.Disconnect(DescriptorOf(grpc_peer));
}

}  // namespace qrm::manager
