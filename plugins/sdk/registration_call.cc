// The gRPC side of registering.
#include "plugins/sdk/registration_call.h"

#include <chrono>
#include <future>

#include <grpcpp/grpcpp.h>

#include "api/grpc_lifetime.h"
#include "api/proto/resourceplugin/v1alpha1/api.grpc.pb.h"
#include "api/wire.h"

namespace qrm::sdk {
namespace {

/// The manager dials the plugin before it answers.
constexpr std::chrono::seconds kRegisterTimeout{5};

/// A channel without a past: gRPC would otherwise wait out the backoff of a former attempt.
std::shared_ptr<grpc::Channel> NewChannel(const std::string& socket) {
  KeepGrpcCallbackThreads();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

struct RegistrationCall::InFlight {
  explicit InFlight(const std::string& socket)
      : stub(wire::pb::Registration::NewStub(NewChannel(socket))) {}

  std::unique_ptr<wire::pb::Registration::Stub> stub;
  grpc::ClientContext context;
  wire::pb::RegisterRequest request;
  wire::pb::Empty response;
  std::promise<Status> answer;
};

RegistrationCall::RegistrationCall(const std::string& manager_socket,
                                   const Announcement& announcement)
    : in_flight_(std::make_shared<InFlight>(manager_socket)) {
  in_flight_->request.set_version(wire::kPluginApiVersion);
  in_flight_->request.set_endpoint(announcement.endpoint);
  in_flight_->request.set_resource_name(announcement.resource);
  *in_flight_->request.mutable_options() = wire::ToWire(announcement.options);
  in_flight_->context.set_deadline(std::chrono::system_clock::now() + kRegisterTimeout);
  in_flight_->stub->async()->Register(
      &in_flight_->context, &in_flight_->request, &in_flight_->response,
      [call = in_flight_](const grpc::Status& status) {
        call->answer.set_value(
            Status(static_cast<StatusCode>(status.error_code()), status.error_message()));
      });
}

Status RegistrationCall::Wait() {
  return in_flight_->answer.get_future().get();
}

void RegistrationCall::Cancel() {
  in_flight_->context.TryCancel();
}

}  // namespace qrm::sdk
