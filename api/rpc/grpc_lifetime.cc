// Starts one call on a channel that is never released, which keeps the threads.
#include "api/rpc/grpc_lifetime.h"

#include <chrono>
#include <memory>

#include <absl/synchronization/mutex.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

namespace qrm {
namespace {

/// A call to an address without a server. Its channel is a user of the callback queue; the call
/// ends at once, on a callback thread.
struct CallToNobody {
  std::shared_ptr<grpc::Channel> channel =
      grpc::CreateChannel("unix:/nonexistent", grpc::InsecureChannelCredentials());
  grpc::GenericStub stub{channel};
  grpc::ClientContext context;
  grpc::Slice nothing;
  grpc::ByteBuffer request{&nothing, 1};  // a buffer without any slice cannot be sent
  grpc::ByteBuffer response;
};

/// Never destroyed, so that its channel stays.
CallToNobody* Pin() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  auto* call = new CallToNobody;
  call->context.set_deadline(std::chrono::system_clock::now());
  call->stub.UnaryCall(&call->context, "/qrm/Nobody", grpc::StubOptions(), &call->request,
                       &call->response, [](const grpc::Status& /*status*/) {});
  return call;
}

}  // namespace

void KeepGrpcCallbackThreads() {
  static const CallToNobody* const pinned = Pin();
  static_cast<void>(pinned);
}

}  // namespace qrm
