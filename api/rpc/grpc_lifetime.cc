// Starts one call on a channel that is never released, which keeps the threads.
#include "api/rpc/grpc_lifetime.h"

#include <chrono>
#include <memory>
#include <string>

#include <absl/synchronization/mutex.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

namespace qrm {
namespace {

/// A call, to an address where nobody listens, makes the channel a user of the callback queue.
struct PinnedCall {
  std::shared_ptr<grpc::Channel> channel =
      grpc::CreateChannel("unix:/nonexistent", grpc::InsecureChannelCredentials());
  grpc::GenericStub stub{channel};
  grpc::ClientContext context;
  grpc::Slice nothing;
  grpc::ByteBuffer request{&nothing, 1};  // a buffer without any slice cannot be sent
  grpc::ByteBuffer response;
};

PinnedCall* Pin() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  auto* pinned = new PinnedCall;  // never destroyed, so that its channel stays
  pinned->context.set_deadline(std::chrono::system_clock::now());
  pinned->stub.UnaryCall(&pinned->context, "/qrm/Pin", grpc::StubOptions(), &pinned->request,
                         &pinned->response, [](const grpc::Status&) {});
  return pinned;
}

}  // namespace

void KeepGrpcCallbackThreads() {
  static const PinnedCall* const pinned = Pin();
  static_cast<void>(pinned);
}

}  // namespace qrm
