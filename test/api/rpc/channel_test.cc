// What a client accepts from a server.
#include "api/rpc/channel.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "api/rpc/grpc_lifetime.h"
#include "test/support/temp_dir.h"

namespace qrm::rpc::channel_test {
namespace {

using testing::HasSubstr;

/// Answers with a megabyte, in a few KiB of gzip, and sees what the client would accept.
class Packer final : public v1::Control::Service {
 public:
  grpc::Status SetLogLevel(grpc::ServerContext* context, const v1::SetLogLevelRequest*,
                           v1::SetLogLevelResponse* response) override {
    const auto accepted = context->client_metadata().find("grpc-accept-encoding");
    accepted_ = accepted == context->client_metadata().end()
                    ? std::string()
                    : std::string(accepted->second.data(), accepted->second.size());
    context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    response->set_level(std::string(1 << 20, 'x'));
    return grpc::Status::OK;
  }

  std::string accepted_;
};

TEST(UnixChannelTest, AnUnexpectedCompressedAnswerIsNotUnpacked) {
  KeepGrpcCallbackThreads();
  const test::TempDir dir;
  Packer packer;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + (dir / "packer.sock"), grpc::InsecureServerCredentials());
  builder.RegisterService(&packer);
  const auto server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  const auto stub = v1::Control::NewStub(UnixChannel(dir / "packer.sock"));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
  v1::SetLogLevelResponse response;
  EXPECT_FALSE(stub->SetLogLevel(&context, {}, &response).ok());
  EXPECT_THAT(packer.accepted_, testing::Not(HasSubstr("gzip")));
  server->Shutdown();
}

}  // namespace
}  // namespace qrm::rpc::channel_test
