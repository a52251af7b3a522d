// Sends what is prepared, and does not wait for a server that reads no more.
#include "test/ways_in/port_attacks.h"

#include <vector>

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "test/support/ask_port.h"
#include "test/support/raw_http2.h"
#include "test/ways_in/repeated.h"

namespace qrm::test {
namespace {

/// What a server gives one process.
constexpr int kSocketConnections = 128;
constexpr std::size_t kFloodFrames = 50'000;
constexpr char kLastStream = 127;

/// Closes them all in the end.
class Connections {
 public:
  Connections() = default;
  ~Connections() {
    for (const int fd : fds_) {
      ::close(fd);
    }
  }
  Connections(const Connections&) = delete;
  Connections& operator=(const Connections&) = delete;

  /// Below 0: it was not accepted.
  int Keep(int fd) {
    if (fd >= 0) {
      const timeval patience{.tv_sec = 0, .tv_usec = 200'000};
      ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
      ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
      fds_.push_back(fd);
    }
    return fd;
  }

 private:
  std::vector<int> fds_;
};

/// Calls on all streams that one byte can name.
template <typename Call>
std::string CallsOf(Call call) {
  std::string calls;
  for (int stream = 1; stream <= kLastStream; stream += 2) {
    calls += call(static_cast<char>(stream));
  }
  return calls;
}

void SendOnMany(const GrpcWay& way, const std::string& bytes) {
  Connections connections;
  for (int i = 0; i < kSocketConnections; ++i) {
    if (const int fd = connections.Keep(ConnectAndGreet(way.socket)); fd >= 0) {
      SendAll(fd, bytes);
    }
  }
}

void SendOnOne(const GrpcWay& way, const std::string& bytes) {
  Connections connections;
  if (const int fd = connections.Keep(ConnectRaw(way.socket)); fd >= 0) {
    SendAll(fd, BegunConnection() + bytes);
  }
}

}  // namespace

void AttackGrpc(const GrpcWay& way) {
  SendOnMany(way, HalfCall(way.method, way.request_bytes - 1));
  SendOnMany(way, WholeCall(way.method));
  SendOnMany(way, CallsOf([&](char stream) { return WholeCall(way.method, stream); }));
  SendOnMany(way, CallsOf([&](char stream) { return BegunCall(way.method, stream); }));
  for (const std::string& frame :
       {Http2Frame(kPingFrame, 0, std::string(8, 'x'), kConnectionStream),
        Http2Frame(kSettingsFrame, 0, "", kConnectionStream),
        Http2Frame(kResetFrame, 0, std::string(4, '\0')),
        Http2Frame(kWindowUpdateFrame, 0, {"\0\0\0\1", 4}, kConnectionStream),
        Http2Frame(kDataFrame, 0, "")}) {
    SendOnOne(way, Repeated(frame, frame.size() * kFloodFrames));
  }
  SendOnOne(way, CallsOf([&](char stream) { return WholeCall(way.method, stream); }));
  const std::string more = Http2Frame(kContinuationFrame, 0, std::string(16'000, 'a'));
  SendOnOne(way,
            Http2Frame(kHeadersFrame, 0, {"\0\1a\1b", 5}) + Repeated(more, std::size_t{16} << 20));
}

void AttackAdvisor(const std::string& socket) {
  constexpr int kAdvisors = 16;
  constexpr std::size_t kMostBytes = (std::size_t{1} << 20) - 1;
  Connections connections;
  for (int i = 0; i < kAdvisors; ++i) {
    const int fd = connections.Keep(ConnectAndGreet(socket));
    for (const std::string& bytes :
         {WholeCall("/qrm.v1.Advisor/GetNode", 1), WholeCall("/qrm.v1.Advisor/Watch", 3)}) {
      SendAll(fd, bytes);
    }
    SendAll(connections.Keep(ConnectAndGreet(socket)),
            HalfCall("/qrm.v1.Advisor/Advise", kMostBytes));
  }
}

void AttackHttp(int port, int connections) {
  for (const std::string& bytes :
       {std::string(), "GET /" + std::string(15 << 10, 'x'),
        "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(1 << 20, 'x'),
        "POST /filter HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 8000000\r\n\r\n" +
            std::string(7'900'000, '[')}) {
    Connections held;
    for (int i = 0; i < connections; ++i) {
      held.Keep(SendToPort(port, bytes));
    }
  }
}

}  // namespace qrm::test
