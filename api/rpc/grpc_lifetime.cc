// Starts one call on a channel that is never released, which keeps the threads.
#include "api/rpc/grpc_lifetime.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

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
CallToNobody* CallNobody(std::function<void(const grpc::Status&)> ended) {
  auto* call = new CallToNobody;
  call->context.set_deadline(std::chrono::system_clock::now());
  call->stub.UnaryCall(&call->context, "/qrm/Nobody", grpc::StubOptions(), &call->request,
                       &call->response, std::move(ended));
  return call;
}

CallToNobody* Pin() {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return CallNobody([](const grpc::Status&) {});
}

std::size_t CallbackThreads() {
  std::size_t count = 0;
  std::error_code error;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", error)) {
    std::string name;
    std::getline(std::ifstream(thread.path() / "comm"), name);
    count += name == "nexting_thread" ? 1 : 0;
  }
  return count;
}

void RestForever(const grpc::Status& /*status*/) {
  while (true) {
    ::pause();
  }
}

/// A resting thread keeps its call, and is not called again: so each call has a thread of its own.
std::vector<CallToNobody*> Rest() {
  std::vector<CallToNobody*> resting;
  for (std::size_t left = CallbackThreads(); left > 1; --left) {
    resting.push_back(CallNobody(RestForever));
  }
  return resting;
}

}  // namespace

void KeepGrpcCallbackThreads() {
  static const CallToNobody* const pinned = Pin();
  static_cast<void>(pinned);
}

void RestSpareGrpcCallbackThreads() {
  static const auto* const resting = new std::vector<CallToNobody*>(Rest());
  static_cast<void>(resting);
}

}  // namespace qrm
