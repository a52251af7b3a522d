// Sends calls as bytes, and hands the answer out as bytes.
#include "api/rpc/unary_call.h"

#include <vector>

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include "api/base/errorf.h"

namespace qrm::rpc {
namespace {

StatusOr<Pieces> PiecesOf(const std::vector<grpc::Slice>& slices) {
  Pieces pieces;
  pieces.reserve(slices.size());
  for (const grpc::Slice& slice : slices) {
    pieces.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return pieces;
}

}  // namespace

std::shared_ptr<grpc::ClientContext> NewContext(Deadline deadline) {
  auto context = std::make_shared<grpc::ClientContext>();
  const auto left = deadline - std::chrono::steady_clock::now();
  context->set_deadline(std::chrono::system_clock::now() + left);
  return context;
}

void Cancel(grpc::ClientContext& context) {
  context.TryCancel();
}

bool StartRaw(const std::shared_ptr<CallsInFlight>& calls,
              const std::shared_ptr<grpc::Channel>& channel, const RawCall& call,
              std::function<void(const StatusOr<Pieces>&)> done) {
  using Buffers = UnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>;
  const grpc::Slice bytes(call.request);  // also of no bytes: a buffer without slice is not sent
  auto buffers = std::make_shared<Buffers>();
  buffers->context = NewContext(call.deadline);
  buffers->context->set_wait_for_ready(call.peer == Peer::kIsAwaited);
  buffers->request = grpc::ByteBuffer(&bytes, 1);
  return StartBy(
      [&](Buffers& started, auto ended) {
        grpc::GenericStub(channel).UnaryCall(started.context.get(), call.method,
                                             grpc::StubOptions(), &started.request,
                                             &started.response, std::move(ended));
      },
      calls, std::move(buffers),
      [done = std::move(done)](const Status& status, const grpc::ByteBuffer& response) {
        if (!status.ok()) {
          done(status);
          return;
        }
        std::vector<grpc::Slice> slices;
        if (!response.Dump(&slices).ok()) {
          done(Errorf(StatusCode::kInternal, "its answer cannot be unpacked"));
          return;
        }
        done(PiecesOf(slices));
      });
}

}  // namespace qrm::rpc
