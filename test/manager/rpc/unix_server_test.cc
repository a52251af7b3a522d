// Placing the socket, telling peers apart and limiting them.
#include "manager/rpc/unix_server.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <utility>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "manager/rpc/counted_call.h"
#include "manager/rpc/guarded_reads.h"
#include "test/support/await.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::unix_server_test {
namespace {

using testing::AllOf;
using testing::Field;
using testing::HasSubstr;
using testing::Optional;

/// Answers NotifyChanged and remembers who asked.
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

  /// Answers with much.
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
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // a connection of its own each time
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

/// A connection that says nothing.
int ConnectRaw(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected =
      fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  EXPECT_TRUE(connected);
  return fd;
}

/// True when the server closes `fd` instead of greeting it.
bool IsHungUp(int fd) {
  char byte = 0;
  return read(fd, &byte, 1) <= 0;
}

constexpr char kConnection = 0;
constexpr char kFirstStream = 1;

/// An HTTP/2 frame.
std::string Frame(uint8_t type, uint8_t flags, const std::string& payload,
                  char stream = kFirstStream) {
  const auto size = static_cast<uint32_t>(payload.size());
  std::string frame = {static_cast<char>(size >> 16),
                       static_cast<char>(size >> 8),
                       static_cast<char>(size),
                       static_cast<char>(type),
                       static_cast<char>(flags),
                       0,
                       0,
                       0,
                       stream};
  return frame + payload;
}

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr uint8_t kDataFrame = 0;
constexpr uint8_t kHeadersFrame = 1;
constexpr uint8_t kSettingsFrame = 4;
constexpr uint8_t kPingFrame = 6;
constexpr uint8_t kContinuationFrame = 9;
constexpr uint8_t kAck = 1;
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;

std::string BegunConnection() {
  return kPreface + Frame(kSettingsFrame, 0, "", kConnection);
}

/// What a client says that has begun a call whose headers are to be continued.
std::string BegunHeaders() {
  return BegunConnection() + Frame(kHeadersFrame, 0, {"\0\1a\1b", 5});
}

/// What a client says that has begun a call of `method`.
std::string BegunCall(const std::string& method) {
  std::string headers;
  for (const auto& [name, value] : {std::pair<std::string, std::string>{":method", "POST"},
                                    {":scheme", "http"},
                                    {":path", "/qrm.v1.Control/" + method},
                                    {":authority", "localhost"},
                                    {"te", "trailers"},
                                    {"content-type", "application/grpc"}}) {
    headers += '\0';
    headers += static_cast<char>(name.size());
    headers += name;
    headers += static_cast<char>(value.size());
    headers += value;
  }
  return Frame(kHeadersFrame, kEndHeaders, headers);
}

/// A connection whose client has taken the server's settings, which give it a larger window.
int ConnectAndGreet(const std::string& path) {
  const int fd = ConnectRaw(path);
  const std::string begun = BegunConnection();
  EXPECT_EQ(send(fd, begun.data(), begun.size(), MSG_NOSIGNAL), static_cast<ssize_t>(begun.size()));
  std::array<char, 9> greeting{};
  EXPECT_EQ(recv(fd, greeting.data(), greeting.size(), MSG_WAITALL),
            static_cast<ssize_t>(greeting.size()));
  const std::string taken = Frame(kSettingsFrame, kAck, "", kConnection);
  EXPECT_EQ(send(fd, taken.data(), taken.size(), MSG_NOSIGNAL), static_cast<ssize_t>(taken.size()));
  return fd;
}

/// Sends the first `size` bytes of a request that is longer. Source: RFC 9113, 4.2: frames have
/// 16 KiB at most.
void SendHalf(int fd, std::size_t size) {
  std::string half = BegunCall("NotifyChanged") + Frame(kDataFrame, 0, {"\0\0\x40\0\0", 5});
  for (std::size_t sent = 0; sent < size; sent += 16'000) {
    half += Frame(kDataFrame, 0, std::string(16'000, '\0'));
  }
  ASSERT_EQ(send(fd, half.data(), half.size(), MSG_NOSIGNAL), static_cast<ssize_t>(half.size()));
}

/// Reads until the server ends the connection.
void AwaitEnd(int fd) {
  std::array<char, 4096> bytes{};
  while (read(fd, bytes.data(), bytes.size()) > 0) {
  }
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

TEST_F(UnixServerTest, FindPeerTellsTheCallingProcess) {
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
  const int fd = ConnectRaw(path_);
  EXPECT_TRUE(IsHungUp(fd));
  close(fd);
  EXPECT_EQ(Notify(path_).error_code(), grpc::StatusCode::UNAVAILABLE);
}

// Were it unpacked, it would be refused for its size.
TEST_F(UnixServerTest, ACompressedRequestIsRefusedUnread) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  grpc::ClientContext context;
  context.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  const grpc::Status refused = Notify(path_, context, std::string(32 << 20, 'x'));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNIMPLEMENTED) << refused.error_message();
  EXPECT_TRUE(Notify(path_).ok());
}

TEST_F(UnixServerTest, HeadersWithoutAnEndEndTheConnectionAndNoOther) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const int fd = ConnectRaw(path_);
  const std::string begun = BegunHeaders();
  ASSERT_EQ(send(fd, begun.data(), begun.size(), MSG_NOSIGNAL), static_cast<ssize_t>(begun.size()));
  const std::string more = Frame(kContinuationFrame, 0, std::string(16'000, 'a'));
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
  const int fd = ConnectRaw(path_);
  std::string flood = BegunConnection();
  const std::string ping = Frame(kPingFrame, 0, std::string(8, '\0'), kConnection);
  for (int i = 0; i < 10'000; ++i) {
    flood += ping;
  }
  ASSERT_GT(send(fd, flood.data(), flood.size(), MSG_NOSIGNAL), 0);
  AwaitEnd(fd);
  close(fd);
  EXPECT_TRUE(Notify(path_).ok());
}

// Clients in Go measure the connection by pings, and keep it alive by them.
TEST_F(UnixServerTest, PingsNowAndThenKeepTheConnection) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const int fd = ConnectRaw(path_);
  std::string pings = BegunConnection();
  for (char i = 0; i < 100; ++i) {
    pings += Frame(kPingFrame, 0, std::string(8, i), kConnection);
  }
  ASSERT_EQ(send(fd, pings.data(), pings.size(), MSG_NOSIGNAL), static_cast<ssize_t>(pings.size()));
  const std::string last = Frame(kPingFrame, kAck, std::string(8, 99), kConnection);
  std::string answers;
  std::array<char, 4096> bytes{};
  while (answers.find(last) == std::string::npos) {
    const ssize_t size = read(fd, bytes.data(), bytes.size());
    ASSERT_GT(size, 0) << "the connection has ended";
    answers.append(bytes.data(), static_cast<std::size_t>(size));
  }
  close(fd);
}

TEST_F(UnixServerTest, ALongRequestIsRefused) {
  UnixServer server({.max_request_bytes = 4096});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  grpc::ClientContext fits;
  EXPECT_TRUE(Notify(path_, fits, std::string(4000, 'x')).ok());
  grpc::ClientContext too_long;
  EXPECT_EQ(Notify(path_, too_long, std::string(5000, 'x')).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(UnixServerTest, WhoeverHasSentMostOfUnfinishedRequestsGoesFirst) {
  UnixServer server({.max_request_bytes = 8 << 20});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const uint64_t ended = ConnectionsEnded();
  const int largest = ConnectAndGreet(path_);
  SendHalf(largest, 3'800'000);
  std::array<int, 5> others{};
  for (int& other : others) {
    other = ConnectAndGreet(path_);
    SendHalf(other, 2'700'000);
  }
  AwaitEnd(largest);
  EXPECT_EQ(ConnectionsEnded(), ended + 1);
  EXPECT_TRUE(Notify(path_).ok());
  close(largest);
  for (const int other : others) {
    close(other);
  }
}

TEST_F(UnixServerTest, WhoeverLeavesAnAnswerUnreadForLongestGoesWhenThereAreTooMany) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const uint64_t ended = ConnectionsEnded();
  const std::string call =
      BegunCall("SetLogLevel") + Frame(kDataFrame, kEndStream, std::string(5, '\0'));
  std::array<int, 3> readers{};
  for (int& reader : readers) {
    reader = ConnectAndGreet(path_);
    ASSERT_EQ(send(reader, call.data(), call.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(call.size()));
    std::array<char, 16'384> begin{};
    ASSERT_EQ(recv(reader, begin.data(), begin.size(), MSG_WAITALL),
              static_cast<ssize_t>(begin.size()));
  }
  AwaitEnd(readers[0]);
  EXPECT_EQ(ConnectionsEnded(), ended + 1);
  EXPECT_TRUE(Notify(path_).ok());
  for (const int reader : readers) {
    close(reader);
  }
}

TEST_F(UnixServerTest, HeadersThatStopHalfwayEndTheConnection) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const int fd = ConnectRaw(path_);
  const auto begin = std::chrono::steady_clock::now();
  const std::string begun = BegunHeaders();
  ASSERT_EQ(send(fd, begun.data(), begun.size(), MSG_NOSIGNAL), static_cast<ssize_t>(begun.size()));
  AwaitEnd(fd);
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, std::chrono::milliseconds(900));
  EXPECT_LT(took, std::chrono::seconds(30));  // gRPC alone waits for ten minutes
  close(fd);
}

TEST_F(UnixServerTest, ASilentConnectionStays) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const int silent = ConnectRaw(path_);
  const int halfway = ConnectRaw(path_);
  const std::string begun = BegunHeaders();
  ASSERT_EQ(send(halfway, begun.data(), begun.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(begun.size()));
  AwaitEnd(halfway);  // those who wait for headers were looked at
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
  const int first = ConnectRaw(path_);
  const int second = ConnectRaw(path_);
  const int third = ConnectRaw(path_);
  EXPECT_TRUE(IsHungUp(third));
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

TEST_F(UnixServerTest, RefusesToTakeALiveServersPlace) {
  UnixServer first({});
  ASSERT_TRUE(first.Start(path_, {&service_}).ok());
  PeerRecorder other;
  UnixServer second({});
  const Status started = second.Start(path_, {&other});
  EXPECT_EQ(started.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(started), HasSubstr("a live server listens there"));
  EXPECT_TRUE(Notify(path_).ok());
}

TEST_F(UnixServerTest, LeavesASocketThatIsNoLongerItsOwn) {
  UnixServer first({});
  ASSERT_TRUE(first.Start(path_, {&service_}).ok());
  ASSERT_EQ(unlink(path_.c_str()), 0);
  PeerRecorder other;
  UnixServer second({});
  ASSERT_TRUE(second.Start(path_, {&other}).ok());
  first.Stop();
  EXPECT_TRUE(Notify(path_).ok());
}

TEST_F(UnixServerTest, PathsThatNoSocketCanHaveAreRefused) {
  UnixServer server({});
  const Status started = server.Start(dir_ / std::string(120, 'x'), {&service_});
  EXPECT_EQ(started.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(started), HasSubstr("1 to 107 letters"));
}

TEST_F(UnixServerTest, GarbageEndsOnlyItsOwnConnection) {
  UnixServer server({});
  ASSERT_TRUE(server.Start(path_, {&service_}).ok());
  const int fd = ConnectRaw(path_);
  const std::string garbage(4096, '\xff');
  ASSERT_GT(write(fd, garbage.data(), garbage.size()), 0);
  EXPECT_TRUE(Notify(path_).ok());
  close(fd);
}

}  // namespace
}  // namespace qrm::manager::unix_server_test
