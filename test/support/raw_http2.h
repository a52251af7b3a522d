// A client of HTTP/2 that follows no rules.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace qrm::test {

// Source: RFC 9113, 6.
inline constexpr uint8_t kDataFrame = 0;
inline constexpr uint8_t kHeadersFrame = 1;
inline constexpr uint8_t kResetFrame = 3;
inline constexpr uint8_t kSettingsFrame = 4;
inline constexpr uint8_t kPingFrame = 6;
inline constexpr uint8_t kWindowUpdateFrame = 8;
inline constexpr uint8_t kContinuationFrame = 9;
inline constexpr uint8_t kAck = 1;
inline constexpr uint8_t kEndStream = 1;
inline constexpr uint8_t kEndHeaders = 4;

inline constexpr char kConnectionStream = 0;
inline constexpr char kFirstStream = 1;

inline std::string Http2Frame(uint8_t type, uint8_t flags, const std::string& payload,
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

/// The first bytes of a client.
inline std::string BegunConnection() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Http2Frame(kSettingsFrame, 0, "", kConnectionStream);
}

/// The bytes of a client that has begun a call whose headers are to be continued.
inline std::string BegunHeaders() {
  return BegunConnection() + Http2Frame(kHeadersFrame, 0, {"\0\1a\1b", 5});
}

/// The bytes of a client that has begun a call of `method`, such as "/qrm.v1.Control/GetStatus".
inline std::string BegunCall(const std::string& method, char stream = kFirstStream) {
  std::string headers;
  for (const auto& [name, value] : {std::pair<std::string, std::string>{":method", "POST"},
                                    {":scheme", "http"},
                                    {":path", method},
                                    {":authority", "localhost"},
                                    {"te", "trailers"},
                                    {"content-type", "application/grpc"}}) {
    headers += '\0';
    headers += static_cast<char>(name.size());
    headers += name;
    headers += static_cast<char>(value.size());
    headers += value;
  }
  return Http2Frame(kHeadersFrame, kEndHeaders, headers, stream);
}

/// A whole call of `method` with an empty request.
inline std::string WholeCall(const std::string& method, char stream = kFirstStream) {
  return BegunCall(method, stream) +
         Http2Frame(kDataFrame, kEndStream, std::string(5, '\0'), stream);
}

/// The first `size` bytes of a call of `method` whose request is longer. Source: RFC 9113, 4.2:
/// frames have 16 KiB at most.
inline std::string HalfCall(const std::string& method, std::size_t size) {
  std::string half = BegunCall(method) + Http2Frame(kDataFrame, 0, {"\0\0\x40\0\0", 5});
  for (std::size_t sent = 0; sent < size; sent += 16'000) {
    half += Http2Frame(kDataFrame, 0, std::string(16'000, '\0'));
  }
  return half;
}

/// A connection to a unix socket that sends nothing; below 0 when no server accepts it.
inline int ConnectRaw(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return fd;
  }
  ::close(fd);
  return -1;
}

/// True when all of `bytes` was taken.
inline bool SendAll(int fd, const std::string& bytes) {
  return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

/// A connection whose client has taken the server's settings, which give it a larger window;
/// below 0 when the server does not greet it.
inline int ConnectAndGreet(const std::string& path) {
  const int fd = ConnectRaw(path);
  std::array<char, 9> greeting{};
  const bool greeted = fd >= 0 && SendAll(fd, BegunConnection()) &&
                       ::recv(fd, greeting.data(), greeting.size(), MSG_WAITALL) ==
                           static_cast<ssize_t>(greeting.size()) &&
                       SendAll(fd, Http2Frame(kSettingsFrame, kAck, "", kConnectionStream));
  if (greeted || fd < 0) {
    return fd;
  }
  ::close(fd);
  return -1;
}

}  // namespace qrm::test
