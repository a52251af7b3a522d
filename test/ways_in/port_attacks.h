// What clients do to a socket of gRPC or a port of HTTP, as far as the kernel lets them.
#pragma once

#include <cstddef>
#include <string>

namespace qrm::test {

/// A gRPC socket, with a call whose request may have `request_bytes` and whose answer is large.
struct GrpcWay {
  std::string socket;
  std::string method;  ///< such as "/qrm.v1.Control/ListPods"
  std::size_t request_bytes = 0;
};

/// Half-sent requests, unread answers, calls without an end, and floods of each kind of frame, each
/// on as many connections as one process may have.
void AttackGrpc(const GrpcWay& way);

/// What an advisor may: as many watches as there are, and requests of 1 MiB that do not end.
void AttackAdvisor(const std::string& socket);

/// Headers that do not end, bodies that are not expected, and silence, on `connections`
/// connections.
void AttackHttp(int port, int connections);

}  // namespace qrm::test
