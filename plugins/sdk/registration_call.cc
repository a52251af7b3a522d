// Calls Register over gRPC.
#include "plugins/sdk/registration_call.h"

#include <chrono>
#include <future>

#include <grpcpp/grpcpp.h>

#include "api/base/check.h"
#include "api/proto/resourceplugin/v1alpha1/api.grpc.pb.h"
#include "api/rpc/channel.h"
#include "api/rpc/unary_call.h"
#include "api/wire.h"

namespace qrm::sdk {
namespace {

/// The manager dials the plugin before it answers.
constexpr std::chrono::seconds kRegisterTimeout{5};

}  // namespace

struct RegistrationCall::InFlight {
  explicit InFlight(const std::string& socket)
      : stub(wire::pb::Registration::NewStub(rpc::UnixChannel(socket))) {}

  std::unique_ptr<wire::pb::Registration::Stub> stub;
  const std::shared_ptr<rpc::CallsInFlight> calls = std::make_shared<rpc::CallsInFlight>();
  std::promise<Status> answer;
};

RegistrationCall::RegistrationCall(const std::string& manager_socket,
                                   const Announcement& announcement)
    : in_flight_(std::make_shared<InFlight>(manager_socket)) {
  using Async = wire::pb::Registration::StubInterface::async_interface;
  wire::pb::RegisterRequest request;
  request.set_version(wire::kPluginApiVersion);
  request.set_endpoint(announcement.endpoint);
  request.set_resource_name(announcement.resource);
  *request.mutable_options() = wire::ToWire(announcement.options);
  const bool sent = rpc::StartUnary({in_flight_->calls, DeadlineAfter(kRegisterTimeout)},
                                    in_flight_->stub->async(), &Async::Register, std::move(request),
                                    [call = in_flight_](const StatusOr<wire::pb::Empty>& answer) {
                                      call->answer.set_value(answer.status());
                                    });
  QRM_CHECK(sent);  // only Cancel stops
}

Status RegistrationCall::Wait() {
  return in_flight_->answer.get_future().get();
}

void RegistrationCall::Cancel() {
  in_flight_->calls->StopAndWait();
}

}  // namespace qrm::sdk
