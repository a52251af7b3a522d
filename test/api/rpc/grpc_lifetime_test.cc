// Which threads run gRPC's callbacks.
#include "api/rpc/grpc_lifetime.h"

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "test/support/await.h"

namespace qrm::grpc_lifetime_test {
namespace {

/// Whether the callbacks of two calls can run at the same time: each waits for the other for a
/// while.
bool TwoRunAtOnce() {
  struct Call {
    grpc::ClientContext context;
    grpc::ByteBuffer response;
  };
  grpc::GenericStub stub(
      grpc::CreateChannel("unix:/nonexistent", grpc::InsecureChannelCredentials()));
  const grpc::Slice nothing;
  const grpc::ByteBuffer request(&nothing, 1);
  std::mutex mutex;
  std::condition_variable changed;
  int begun = 0;
  int met = 0;
  int ended = 0;
  const auto callback = [&](const grpc::Status&) {
    std::unique_lock lock(mutex);
    ++begun;
    changed.notify_all();
    met += changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return begun == 2; });
    ++ended;
    changed.notify_all();
  };
  std::array<Call, 2> calls;
  for (Call& call : calls) {
    call.context.set_deadline(std::chrono::system_clock::now());
    stub.UnaryCall(&call.context, "/qrm/Test", grpc::StubOptions(), &request, &call.response,
                   callback);
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return ended == 2; });
  return met == 2;
}

TEST(GrpcLifetimeTest, OneThreadRunsAllCallbacksOnceTheOthersRest) {
  KeepGrpcCallbackThreads();
  ASSERT_TRUE(test::Await(TwoRunAtOnce)) << "gRPC has several threads";
  RestSpareGrpcCallbackThreads();
  EXPECT_TRUE(test::Await([] { return !TwoRunAtOnce(); }));
  EXPECT_FALSE(TwoRunAtOnce());
}

}  // namespace
}  // namespace qrm::grpc_lifetime_test
