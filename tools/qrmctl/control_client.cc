// Connects to the socket before gRPC does, since the kernel's error says more than gRPC's.
#include "tools/qrmctl/control_client.h"

#include <cerrno>
#include <chrono>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <grpcpp/grpcpp.h>

#include "api/proto/qrm/v1/control.grpc.pb.h"

namespace qrm::manager::cli {
namespace {

constexpr std::chrono::seconds kTimeout{10};
constexpr int kMaxMessageBytes = 64 << 20;

/// 0, or why nothing can connect to `path`.
int ConnectError(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return ENAMETOOLONG;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (probe < 0) {
    return errno;
  }
  const int result = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = result == 0 ? 0 : errno;
  close(probe);
  return error;
}

Status CheckReachable(const std::string& path) {
  const int error = ConnectError(path);
  switch (error) {
    case 0:
      return OkStatus();
    case ENOENT:
    case ECONNREFUSED:
      return Errorf(StatusCode::kUnavailable,
                    "cannot reach qrmd: nothing listens on {}; start qrmd, or name its socket with "
                    "--control-socket",
                    path);
    case EACCES:
    case EPERM:
      return Errorf(StatusCode::kPermissionDenied,
                    "cannot reach qrmd: this user may not open {}; run qrmctl as root", path);
    default:
      return Errorf(StatusCode::kUnavailable, "cannot reach qrmd on {}: {}; check the path", path,
                    std::strerror(error));
  }
}

/// Why a call that had to end by `deadline` failed, in qrmd's words if it answered.
Status Explain(const grpc::Status& status, const std::string& path,
               std::chrono::system_clock::time_point deadline) {
  const bool late = std::chrono::system_clock::now() >= deadline;
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED && !late) {
    return {StatusCode::kDeadlineExceeded, status.error_message()};  // a plugin's
  }
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return Errorf(StatusCode::kUnavailable,
                    "cannot talk to qrmd on {}: {}; qrmd may be stopping or may not serve this "
                    "user: try again as root",
                    path, status.error_message());
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Errorf(StatusCode::kDeadlineExceeded,
                    "cannot wait longer for qrmd on {}: no answer in {} s; see qrmd's log", path,
                    kTimeout.count());
    default:
      return {static_cast<StatusCode>(status.error_code()), status.error_message()};
  }
}

}  // namespace

struct ControlClient::Impl {
  explicit Impl(const std::string& socket_path) : path(socket_path) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
    // Proxy settings of the environment concern no unix socket.
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    stub = v1::Control::NewStub(
        grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments));
  }

  template <typename Request, typename Response>
  StatusOr<Response> Call(grpc::Status (v1::Control::Stub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                          const Request& request) {
    QRM_RETURN_IF_ERROR(CheckReachable(path));
    grpc::ClientContext context;
    const auto deadline = std::chrono::system_clock::now() + kTimeout;
    context.set_deadline(deadline);
    Response response;
    const grpc::Status status = ((*stub).*method)(&context, request, &response);
    if (!status.ok()) {
      return cli::Explain(status, path, deadline);
    }
    return response;
  }

  const std::string path;
  std::unique_ptr<v1::Control::Stub> stub;
};

ControlClient::ControlClient(const std::string& socket_path)
    : impl_(std::make_unique<Impl>(socket_path)) {}

ControlClient::~ControlClient() = default;

StatusOr<v1::GetStatusResponse> ControlClient::GetStatus() {
  return impl_->Call(&v1::Control::Stub::GetStatus, v1::GetStatusRequest());
}

StatusOr<v1::ListPluginsResponse> ControlClient::ListPlugins() {
  return impl_->Call(&v1::Control::Stub::ListPlugins, v1::ListPluginsRequest());
}

StatusOr<v1::ListPodsResponse> ControlClient::ListPods(const std::string& pod) {
  v1::ListPodsRequest request;
  request.set_pod(pod);
  return impl_->Call(&v1::Control::Stub::ListPods, request);
}

StatusOr<v1::GetTopologyResponse> ControlClient::GetTopology() {
  return impl_->Call(&v1::Control::Stub::GetTopology, v1::GetTopologyRequest());
}

StatusOr<v1::ExplainResponse> ControlClient::Explain(const std::string& pod) {
  v1::ExplainRequest request;
  request.set_pod(pod);
  return impl_->Call(&v1::Control::Stub::Explain, request);
}

StatusOr<v1::DryRunResponse> ControlClient::DryRun(const std::string& pod) {
  v1::DryRunRequest request;
  request.set_pod(pod);
  return impl_->Call(&v1::Control::Stub::DryRun, request);
}

StatusOr<v1::GetPoolsResponse> ControlClient::GetPools(const std::string& resource) {
  v1::GetPoolsRequest request;
  request.set_resource_name(resource);
  return impl_->Call(&v1::Control::Stub::GetPools, request);
}

StatusOr<v1::SetPoolsResponse> ControlClient::SetPools(
    const std::string& resource, const std::map<std::string, std::string>& cpus_by_pool) {
  v1::SetPoolsRequest request;
  request.set_resource_name(resource);
  request.mutable_cpus_by_pool()->insert(cpus_by_pool.begin(), cpus_by_pool.end());
  return impl_->Call(&v1::Control::Stub::SetPools, request);
}

}  // namespace qrm::manager::cli
