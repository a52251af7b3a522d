// Sends calls as bytes on a channel, and finds the cause of failed calls.
#include "manager/registry/calls/grpc_plugin_client.h"

#include <string_view>
#include <utility>

#include <grpcpp/channel.h>

#include "api/base/errorf.h"
#include "api/rpc/channel.h"
#include "api/rpc/unary_call.h"
#include "plugins/sdk/calls/answer_check.h"
#include "plugins/sdk/calls/compute_calls.h"
#include "plugins/sdk/calls/plugin_calls.h"

namespace qrm::manager {
namespace {

using calls::Blame;

/// gRPC reports it with a code that plugins also use; only the text distinguishes the two.
bool IsTooLarge(const Status& status) {
  return MessageOf(status).starts_with("Received message larger than max");
}

Blame BlameFor(const Status& status, grpc::Channel& channel) {
  if (IsTooLarge(status)) {
    return Blame::kProtocol;
  }
  switch (status.code()) {
    case StatusCode::kDeadlineExceeded:
      return Blame::kTimeout;
    case StatusCode::kCancelled:
      return Blame::kStopping;
    case StatusCode::kUnavailable:  // the plugin's own error if it is connected
      return channel.GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY ? Blame::kRefusal
                                                                              : Blame::kConnection;
    default:
      return Blame::kRefusal;
  }
}

Status CauseOf(const Status& status, Blame blame) {
  const std::string text = calls::OneLine(MessageOf(status));
  switch (blame) {
    case Blame::kProtocol:
      return Errorf(StatusCode::kInvalidArgument, "its answer cannot be read ({})", text);
    case Blame::kTimeout:
      return {StatusCode::kDeadlineExceeded, "no answer before the deadline"};
    case Blame::kConnection:
      return Errorf(StatusCode::kUnavailable, "nothing answers on its socket ({})", text);
    case Blame::kStopping:
      return {StatusCode::kCancelled, "the call was cancelled"};
    case Blame::kRefusal:
    case Blame::kNobody:
      break;
  }
  return {status.code(), text.empty() ? fmt::format("it answered with code {} and no message",
                                                    static_cast<int>(status.code()))
                                      : text};
}

constexpr std::string_view kDriverService = "/cci.v1alpha1.CCIDriver/";

using OptionsResult = calls::CallTo<calls::GetOptions>::Result;

/// A driver need not serve the options call; it is then called before each start.
OptionsResult OrDefault(OptionsResult result) {
  if (result.value.status().code() == StatusCode::kUnimplemented) {
    return {PluginOptions{.pre_start_required = true}, calls::Blame::kNobody};
  }
  return result;
}

}  // namespace

GrpcPluginClient::GrpcPluginClient(const std::string& socket, NumaMask machine_nodes,
                                   std::shared_ptr<rpc::CallsInFlight> in_flight)
    // A restarted plugin must be live again within two seconds.
    : channel_(rpc::UnixChannel(socket, {.most_backoff = std::chrono::milliseconds(500),
                                         .max_message_bytes = kMaxAnswerBytes})),
      machine_nodes_(std::move(machine_nodes)),
      in_flight_(std::move(in_flight)) {}

GrpcPluginClient::~GrpcPluginClient() = default;

void GrpcPluginClient::Start(const std::shared_ptr<calls::Call>& call, Deadline deadline) {
  const bool waits = call->method().before_listening == calls::BeforeListening::kWaits;
  const rpc::RawCall raw{.method = call->method().path,
                         .request = call->Request(),
                         .deadline = deadline,
                         .peer = waits ? rpc::Peer::kIsAwaited : rpc::Peer::kListens};
  const bool sent = rpc::StartRaw(
      in_flight_, channel_, raw,
      [call, channel = channel_, nodes = machine_nodes_](const StatusOr<Pieces>& answer) {
        if (answer.ok()) {
          call->Take(*answer, nodes);
          return;
        }
        const Blame blame = BlameFor(answer.status(), *channel);
        call->Fail(CauseOf(answer.status(), blame), blame);
      });
  if (!sent) {
    call->Fail(Status(StatusCode::kCancelled, "qrmd is stopping"), Blame::kStopping);
  }
}

void DriverClient::Start(const std::shared_ptr<calls::Call>& call, Deadline deadline) {
  if (std::string_view(call->method().path).starts_with(kDriverService)) {
    socket_.Start(call, deadline);
    return;
  }
  if (const auto options = std::dynamic_pointer_cast<calls::CallTo<calls::GetOptions>>(call);
      options != nullptr) {
    socket_.Ask<calls::ComputeOptions>({}, deadline, [options](OptionsResult result) {
      options->End(OrDefault(std::move(result)));
    });
    return;
  }
  call->Fail(Status(StatusCode::kUnimplemented, "it is a compute driver, which has no such call"),
             calls::Blame::kRefusal);
}

}  // namespace qrm::manager
