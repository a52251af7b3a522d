// Asks HTTP ports of this machine as a plain client.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "test/support/raw_http2.h"

namespace qrm::test {

/// Sends `bytes` on a new connection to `port` of loopback, which the returned number holds; below
/// 0 when it was not accepted. The caller closes it.
inline int SendToPort(int port, const std::string& bytes) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd < 0 || ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    ::close(fd);
    return -1;
  }
  const timeval patience{.tv_sec = 1, .tv_usec = 0};
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  SendAll(fd, bytes);
  return fd;
}

/// The whole answer to `head`, such as "GET /readyz"; empty when the connection ends without one.
inline std::string AnswerOf(int port, const std::string& head, const std::string& body = "") {
  const int fd = SendToPort(port, head +
                                      " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                      "Content-Type: application/json\r\nContent-Length: " +
                                      std::to_string(body.size()) + "\r\n\r\n" + body);
  std::string answer;
  std::array<char, 64 << 10> part{};
  for (ssize_t size = 0; fd >= 0 && (size = ::read(fd, part.data(), part.size())) > 0;) {
    answer.append(part.data(), static_cast<std::size_t>(size));
  }
  ::close(fd);
  return answer;
}

/// The answer's body.
inline std::string AskPort(int port, const std::string& head, const std::string& body = "") {
  const std::string answer = AnswerOf(port, head, body);
  const std::size_t end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace qrm::test
