// Accepts connections on one thread, checks the peer and hands them to a gRPC server without ports.
#include "manager/rpc/unix_server.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>

#include "api/base/errorf.h"
#include "api/base/number.h"
#include "api/base/rejected.h"
#include "api/base/spare_handles.h"
#include "api/base/unix_socket.h"
#include "api/rpc/grpc_lifetime.h"
#include "api/rpc/request_bounds.h"
#include "manager/rpc/guarded_reads.h"
#include "manager/rpc/header_guard.h"
#include "manager/rpc/peer_table.h"

namespace qrm::manager {
namespace {

constexpr std::chrono::seconds kStopGrace{1};
/// The limit of kubelet's clients.
constexpr int kMaxAnswerBytes = 16 << 20;
constexpr int kIdleConnectionMs = 10 * 60 * 1000;
/// The prefix of gRPC's name for the peer of a connection that was handed to it as a descriptor.
constexpr std::string_view kPeerPrefix = "fd:";

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

/// A listening Unix socket whose file appears only when it is ready: it is bound to a temporary
/// name and renamed. The file is removed with its owner. Threads: Open and the destructor from one
/// thread; Accept from another one.
class UnixListener {
 public:
  UnixListener() = default;
  /// Closes the socket, and removes its file if it still belongs to this object.
  ~UnixListener();
  UnixListener(const UnixListener&) = delete;
  UnixListener& operator=(const UnixListener&) = delete;

  /// Errors: as UnixServer::Start.
  Status Open(const std::string& path, const UnixServerOptions& options);

  /// The next connection, as a descriptor that the caller closes; -1 after Shutdown. Waits while
  /// the process has no free descriptors, and the listener has given those back that it kept.
  int Accept();

  /// Ends Accept.
  void Shutdown() const;

 private:
  Status MakeDirectory(const UnixServerOptions& options) const;
  Status BindAndListen(const std::string& temporary, const UnixServerOptions& options);

  std::string path_;
  int fd_ = -1;
  bool placed_ = false;
  unsigned long inode_ = 0;
  SpareHandles spares_;  // used by Accept
};

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
