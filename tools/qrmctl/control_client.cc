// Connects to the socket before gRPC does, since the kernel says more than gRPC why it cannot.
#include "tools/qrmctl/control_client.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>

#include <unistd.h>

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <grpcpp/channel.h>

#include "api/base/check.h"
#include "api/base/errorf.h"
#include "api/base/unix_socket.h"
#include "api/proto/qrm/v1/control.pb.h"
#include "api/rpc/channel.h"
#include "api/rpc/unary_call.h"

namespace qrm::manager::cli {
namespace {

constexpr std::chrono::seconds kAnswerTimeout{10};
constexpr int kMaxMessageBytes = 64 << 20;

Status CheckReachable(const std::string& path, const std::string& option) {
  const int error = ProbeSocket(path);
  switch (error) {
    case 0:
      return OkStatus();
    case ENOENT:
    case ECONNREFUSED:
      return Errorf(StatusCode::kUnavailable,
                    "cannot reach qrmd: nothing listens on {}; start qrmd, or name its socket with "
                    "{}",
                    path, option);
    case EACCES:
    case EPERM:
      return Errorf(StatusCode::kPermissionDenied,
                    "cannot reach qrmd: this user may not open {}; run qrmctl as root", path);
    default:
      return Errorf(StatusCode::kUnavailable, "cannot reach qrmd on {}: {}; check the path", path,
                    std::strerror(error));
  }
}

/// Why a call that had to end by `deadline` failed, in qrmd's words if it `answered`: its errors
/// about plugins have the same codes.
Status Explain(const Status& status, const std::string& path, Deadline deadline, bool answered) {
  const bool late = std::chrono::steady_clock::now() >= deadline;
  const bool is_late = status.code() == StatusCode::kDeadlineExceeded && late;
  if (answered && !is_late) {
    return status;
  }
  const bool is_root = ::geteuid() == 0;
  switch (status.code()) {
    case StatusCode::kUnavailable:
      return Errorf(StatusCode::kUnavailable,
                    "cannot talk to qrmd on {}: {}; qrmd may be stopping{}: try again{}", path,
                    MessageOf(status), is_root ? "" : " or may not serve this user",
                    is_root ? "" : " as root");
    case StatusCode::kDeadlineExceeded:
      return Errorf(StatusCode::kDeadlineExceeded,
                    "cannot wait longer for qrmd on {}: no answer in {} s; see qrmd's log", path,
                    kAnswerTimeout.count());
    default:
      return status;
  }
}

/// The path of the call that takes `request` and answers `response`, as the proto has it.
std::string MethodOf(const google::protobuf::Message& request,
                     const google::protobuf::Message& response) {
  // What qrmctl calls is the first service of its file.
  const google::protobuf::ServiceDescriptor& control = *request.GetDescriptor()->file()->service(0);
  for (int i = 0; i < control.method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *control.method(i);
    if (method.input_type() == request.GetDescriptor()) {
      QRM_CHECK(method.output_type() == response.GetDescriptor());
      return fmt::format("/{}/{}", control.full_name(), method.name());
    }
  }
  QRM_CHECK(false);  // no request of this API
  return {};
}

}  // namespace

// An older qrmd does not have every call.
Status ControlClient::Call(const google::protobuf::Message& request,
                           google::protobuf::Message& response) const {
  Status status = Send(request, response);
  if (status.code() != StatusCode::kUnimplemented || !MessageOf(status).empty()) {
    return status;
  }
  v1::GetStatusResponse qrmd;
  const bool known = Send(v1::GetStatusRequest(), qrmd).ok();
  return Errorf(
      StatusCode::kUnimplemented,
      "cannot ask qrmd {}: it does not have the call {} of qrmctl {}; upgrade qrmd, or use "
      "the qrmctl of qrmd's version",
      known ? qrmd.version() : "of another version", MethodOf(request, response), QRM_VERSION);
}

Status ControlClient::Send(const google::protobuf::Message& request,
                           google::protobuf::Message& response) const {
  QRM_RETURN_IF_ERROR(CheckReachable(path_, option_));
  const std::string method = MethodOf(request, response);
  const Deadline deadline = DeadlineAfter(kAnswerTimeout);
  const auto answered = std::make_shared<std::promise<Status>>();
  const std::shared_ptr<grpc::Channel> channel =
      rpc::UnixChannel(path_, {.max_message_bytes = kMaxMessageBytes});
  const bool sent = rpc::StartRaw(
      std::make_shared<rpc::CallsInFlight>(), channel,
      {.method = method.c_str(), .request = request.SerializeAsString(), .deadline = deadline},
      [&response, answered](const StatusOr<Pieces>& answer) {
        Status status = answer.status();
        if (status.ok() && !response.ParseFromString(Joined(*answer))) {
          status = Errorf(StatusCode::kInternal,
                          "cannot read qrmd's answer; use the qrmctl of the same version");
        }
        answered->set_value(std::move(status));
      });
  QRM_CHECK(sent);  // these calls are never stopped
  const Status status = answered->get_future().get();
  const bool connected = channel->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
  return Explain(status, path_, deadline, connected);
}

}  // namespace qrm::manager::cli
