// Placing the socket, telling peers apart and limiting them.
#include "manager/rpc/unix_server.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "api/base/rejected.h"
#include "api/base/unix_socket.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "manager/rpc/counted_call.h"
#include "test/support/await.h"
#include "test/support/raw_http2.h"
#include "test/support/temp_dir.h"
#include "test/support/used_up_handles.h"

namespace qrm::manager::unix_server_test {
namespace {

using testing::AllOf;
using testing::Field;
using testing::HasSubstr;
using testing::Optional;

/// Answers NotifyChanged and remembers the callers.
class PeerRecorder final : public v1::Control::CallbackService {
 public:
  grpc::ServerUnaryReactor* NotifyChanged(grpc::CallbackServerContext* context,
                                          const v1::NotifyChangedRequest*,
                                          v1::NotifyChangedResponse*) override {
    {
      const std::lock_guard lock(mutex_);
      peer_ = context->peer();
    }
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }

  /// Gives long answers.
  grpc::ServerUnaryReactor* SetLogLevel(grpc::CallbackServerContext* context,
                                        const v1::SetLogLevelRequest*,
                                        v1::SetLogLevelResponse* response) override {
    CountedCall& call = CountedCall::Begin(*context);
    grpc::ServerUnaryReactor* const reactor = call.reactor();
    response->set_level(std::string(CountedCall::kMostUnreadBytes / 10, 'x'));  // counts as 0.4
    call.Answer(grpc::Status::OK, MessageAnswer(*response));
    return reactor;
  }

  std::string peer() {
    const std::lock_guard lock(mutex_);
    return peer_;
  }

 private:
  std::mutex mutex_;
  std::string peer_;
};

/// The answer to a call of `context` that carries `text`, from a server on `path`.
grpc::Status Notify(const std::string& path, grpc::ClientContext& context,
                    const std::string& text) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a new connection each time
  const auto channel =
      grpc::CreateCustomChannel("unix:" + path, grpc::InsecureChannelCredentials(), arguments);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  v1::NotifyChangedRequest request;
  request.set_resource_name(text);
  v1::NotifyChangedResponse response;
  return v1::Control::NewStub(channel)->NotifyChanged(&context, request, &response);
}

grpc::Status Notify(const std::string& path) {
  grpc::ClientContext context;
  return Notify(path, context, "");
}

/// True when the server closes `fd` instead of greeting it.
bool IsHungUp(int fd) {
  char byte = 0;
  return read(fd, &byte, 1) <= 0;
}

constexpr char kNotify[] = "/qrm.v1.Control/NotifyChanged";

/// Reads until the server ends the connection.
void AwaitEnd(int fd) {
  std::array<char, 4096> bytes{};
  while (read(fd, bytes.data(), bytes.size()) > 0) {
  }
}

/// True when as many have been rejected, soon, and no more.
bool AwaitRejected(Rejected kind, uint64_t count) {
  return test::Await([&] { return RejectedSoFar(kind) >= count; }) && RejectedSoFar(kind) == count;
}

class UnixServerTest : public testing::Test {
 protected:
  test::TempDir dir_;
  const std::string path_ = dir_ / "a/b/server.sock";
  PeerRecorder service_;
};

TEST_F(UnixServerTest, ServesUnderItsNameAndRemovesItOnStop) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  EXPECT_TRUE(Notify(path_).ok());
  server.Stop();
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
  EXPECT_EQ(Notify(path_).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(UnixServerTest, FindPeerReportsTheCallingProcess) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  ASSERT_TRUE(Notify(path_).ok());
  const auto peer = server.FindPeer(service_.peer());
  EXPECT_THAT(peer, Optional(AllOf(Field(&PeerCredentials::pid, getpid()),
                                   Field(&PeerCredentials::uid, geteuid()))))
      << service_.peer();
  EXPECT_FALSE(server.FindPeer("ipv4:10.0.0.1:80").has_value());
  EXPECT_FALSE(server.FindPeer("fd:x").has_value());
}

TEST_F(UnixServerTest, UsersThatAreNotAllowedAreDisconnected) {
  UnixServer server({.allowed_uids = {geteuid() + 1}});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const uint64_t rejected = RejectedSoFar(Rejected::kSocketUser);
  const int fd = test::ConnectRaw(path_);
  EXPECT_TRUE(IsHungUp(fd));
  EXPECT_TRUE(AwaitRejected(Rejected::kSocketUser, rejected + 1));
  close(fd);
  EXPECT_EQ(Notify(path_).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(UnixServerTest, GreetsAClientWhenTheProcessHasNoFileHandleLeft) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const test::UsedUpHandles used_up;
  const sockaddr_un address = *SocketAddress(path_);
  ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_FALSE(IsHungUp(fd));
  close(fd);
}

// If it were unpacked, it would be rejected for its size.
TEST_F(UnixServerTest, ACompressedRequestIsRejectedUnread) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const uint64_t rejected = RejectedSoFar(Rejected::kGrpcCompressed);
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  const grpc::Status refused = Notify(path_, context, std::string(32 << 20, 'x'));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNIMPLEMENTED) << refused.error_message();
  EXPECT_TRUE(AwaitRejected(Rejected::kGrpcCompressed, rejected + 1));
  EXPECT_TRUE(Notify(path_).ok());
}

TEST_F(UnixServerTest, HeadersWithoutAnEndEndTheConnectionAndNoOther) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const int fd = test::ConnectRaw(path_);
  const std::string begun = test::BegunHeaders();
  ASSERT_TRUE(test::SendAll(fd, begun));
  const std::string more = test::Http2Frame(test::kContinuationFrame, 0, std::string(16'000, 'a'));
  std::size_t sent = 0;
  while (send(fd, more.data(), more.size(), MSG_NOSIGNAL) > 0) {
    sent += more.size();
    ASSERT_LT(sent, std::size_t{64} << 20) << "the flood goes on";
  }
  close(fd);
  EXPECT_TRUE(Notify(path_).ok());
}

TEST_F(UnixServerTest, AFloodOfPingsEndsTheConnectionAndNoOther) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const int fd = test::ConnectRaw(path_);
  std::string flood = test::BegunConnection();
  const std::string ping =
      test::Http2Frame(test::kPingFrame, 0, std::string(8, '\0'), test::kConnectionStream);
  for (int i = 0; i < 10'000; ++i) {
    flood += ping;
  }
  ASSERT_GT(send(fd, flood.data(), flood.size(), MSG_NOSIGNAL), 0);
  AwaitEnd(fd);
  close(fd);
  EXPECT_TRUE(Notify(path_).ok());
}

/// The calls of a client that acknowledges nothing, which the server's settings do not bind.
TEST_F(UnixServerTest, AFloodOfCallsEndsTheConnectionAndNoOther) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const uint64_t ended = RejectedSoFar(Rejected::kGrpcFrames);
  const int fd = test::ConnectRaw(path_);
  std::string flood = test::BegunConnection();
  for (int i = 0; i < 64; ++i) {
    flood += test::BegunCall(kNotify, static_cast<char>(2 * i + 1));
  }
  ASSERT_GT(send(fd, flood.data(), flood.size(), MSG_NOSIGNAL), 0);
  AwaitEnd(fd);
  close(fd);
  EXPECT_TRUE(AwaitRejected(Rejected::kGrpcFrames, ended + 1));
  EXPECT_TRUE(Notify(path_).ok());
}

// Clients in Go measure the connection by pings, and keep it alive by them.
TEST_F(UnixServerTest, PingsNowAndThenKeepTheConnection) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const int fd = test::ConnectRaw(path_);
  std::string pings = test::BegunConnection();
  for (char i = 0; i < 100; ++i) {
    pings += test::Http2Frame(test::kPingFrame, 0, std::string(8, i), test::kConnectionStream);
  }
  ASSERT_TRUE(test::SendAll(fd, pings));
  const std::string last =
      test::Http2Frame(test::kPingFrame, test::kAck, std::string(8, 99), test::kConnectionStream);
  std::string answers;
  std::array<char, 4096> bytes{};
  while (answers.find(last) == std::string::npos) {
    const ssize_t size = read(fd, bytes.data(), bytes.size());
    ASSERT_GT(size, 0) << "the connection has ended";
    answers.append(bytes.data(), static_cast<std::size_t>(size));
  }
  close(fd);
}

TEST_F(UnixServerTest, ALongRequestIsRejected) {
  UnixServer server({.max_request_bytes = 4096});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  grpc::ClientContext fits;
  EXPECT_TRUE(Notify(path_, fits, std::string(4000, 'x')).ok());
  grpc::ClientContext too_long;
  EXPECT_EQ(Notify(path_, too_long, std::string(5000, 'x')).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(UnixServerTest, TheClientWithMostUnfinishedBytesIsClosedFirst) {
  UnixServer server({.max_request_bytes = 8 << 20});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const uint64_t ended = RejectedSoFar(Rejected::kGrpcUnfinished);
  const int largest = test::ConnectAndGreet(path_);
  ASSERT_TRUE(test::SendAll(largest, test::HalfCall(kNotify, 3'800'000)));
  std::array<int, 5> others{};
  for (int& other : others) {
    other = test::ConnectAndGreet(path_);
    ASSERT_TRUE(test::SendAll(other, test::HalfCall(kNotify, 2'700'000)));
  }
  AwaitEnd(largest);
  EXPECT_TRUE(AwaitRejected(Rejected::kGrpcUnfinished, ended + 1));
  EXPECT_TRUE(Notify(path_).ok());
  close(largest);
  for (const int other : others) {
    close(other);
  }
}

TEST_F(UnixServerTest, TheClientThatLeavesAnAnswerUnreadForLongestIsClosedWhenThereAreTooMany) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const uint64_t ended = RejectedSoFar(Rejected::kGrpcUnread);
  const std::string call = test::WholeCall("/qrm.v1.Control/SetLogLevel");
  std::array<int, 3> readers{};
  for (int& reader : readers) {
    reader = test::ConnectAndGreet(path_);
    ASSERT_TRUE(test::SendAll(reader, call));
    std::array<char, 16'384> begin{};
    ASSERT_EQ(recv(reader, begin.data(), begin.size(), MSG_WAITALL),
              static_cast<ssize_t>(begin.size()));
  }
  AwaitEnd(readers[0]);
  EXPECT_TRUE(AwaitRejected(Rejected::kGrpcUnread, ended + 1));
  EXPECT_TRUE(Notify(path_).ok());
  for (const int reader : readers) {
    close(reader);
  }
}

TEST_F(UnixServerTest, HeadersThatStopHalfwayEndTheConnection) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const int fd = test::ConnectRaw(path_);
  const auto begin = std::chrono::steady_clock::now();
  const std::string begun = test::BegunHeaders();
  ASSERT_TRUE(test::SendAll(fd, begun));
  AwaitEnd(fd);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, std::chrono::milliseconds(900));
  EXPECT_LT(took, std::chrono::seconds(30));  // gRPC alone waits for ten minutes
  close(fd);
}

TEST_F(UnixServerTest, ASilentConnectionStays) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const int silent = test::ConnectRaw(path_);
  const int halfway = test::ConnectRaw(path_);
  const std::string begun = test::BegunHeaders();
  ASSERT_TRUE(test::SendAll(halfway, begun));
  AwaitEnd(halfway);  // connections that wait for headers were checked
  char byte = 0;
  EXPECT_EQ(recv(silent, &byte, 1, MSG_DONTWAIT), 1) << "the server's greeting";
  std::array<char, 4096> rest{};
  ssize_t received = 1;
  int error = 0;
  while (received > 0) {
    received = recv(silent, rest.data(), rest.size(), MSG_DONTWAIT);
    error = received < 0 ? errno : 0;
  }
  EXPECT_EQ(error, EAGAIN);
  close(silent);
  close(halfway);
}

TEST_F(UnixServerTest, ConnectionsOfOneProcessAreBoundedAndFreedWhenClosed) {
  UnixServer server({.connections = {.per_process = 2}});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const uint64_t rejected = RejectedSoFar(Rejected::kSocketConnections);
  const int first = test::ConnectRaw(path_);
  const int second = test::ConnectRaw(path_);
  const int third = test::ConnectRaw(path_);
  EXPECT_TRUE(IsHungUp(third));
  EXPECT_TRUE(AwaitRejected(Rejected::kSocketConnections, rejected + 1));
  EXPECT_FALSE(IsHungUp(second));
  close(first);
  close(second);
  close(third);
  EXPECT_TRUE(test::Await([&] { return Notify(path_).ok(); }));
}

TEST_F(UnixServerTest, SocketAndDirectoryHaveTheGivenModes) {
  UnixServer server({.socket_mode = 0600, .directory_mode = 0750});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((dir_ / "a/b").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0750u);
}

TEST_F(UnixServerTest, ReplacesWhatIsLeftOver) {
  ASSERT_EQ(mkdir((dir_ / "a").c_str(), 0700), 0);
  ASSERT_EQ(mkdir((dir_ / "a/b").c_str(), 0700), 0);
  std::ofstream(path_) << "left over";
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  EXPECT_TRUE(Notify(path_).ok());
}

TEST_F(UnixServerTest, DoesNotReplaceALiveServer) {
  UnixServer first({});
  ASSERT_TRUE(first.Start(path_, {&service_}).ok());
  PeerRecorder other;
  UnixServer second({});
  const Status started = second.Start(path_, {&other});
  EXPECT_EQ(started.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(started), HasSubstr("a live server listens there"));
  EXPECT_TRUE(Notify(path_).ok());
}

TEST_F(UnixServerTest, DoesNotRemoveASocketThatWasReplaced) {
  UnixServer first({});
  ASSERT_TRUE(first.Start(path_, {&service_}).ok());
  ASSERT_EQ(unlink(path_.c_str()), 0);
  PeerRecorder other;
  UnixServer second({});
  ASSERT_TRUE(second.Start(path_, {&other}).ok());
  first.Stop();
  EXPECT_TRUE(Notify(path_).ok());
}

TEST_F(UnixServerTest, PathsThatNoSocketCanHaveAreRejected) {
  UnixServer server({});
  const Status started = server.Start(dir_ / std::string(120, 'x'), {&service_});
  EXPECT_EQ(started.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(started), HasSubstr("1 to 107 characters"));
}

TEST_F(UnixServerTest, GarbageEndsOnlyItsConnection) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const int fd = test::ConnectRaw(path_);
  const std::string garbage(4096, '\xff');
  ASSERT_GT(write(fd, garbage.data(), garbage.size()), 0);
  EXPECT_TRUE(Notify(path_).ok());
  close(fd);
}

}  // namespace
}  // namespace qrm::manager::unix_server_test
