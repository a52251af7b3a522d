// Counts the clients and texts that are turned away, so that an operator sees an attack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace qrm {

/// What is turned away, by kind.
enum class Rejected {
  kSocketUser,         ///< a user who may not connect to a socket
  kSocketConnections,  ///< a connection to a socket, beyond the limits of its process or user
  kGrpcCalls,          ///< a connection whose calls go on beyond their rate
  kGrpcFrames,         ///< one whose headers do not end, or that sends too many frames
  kGrpcUnfinished,     ///< one with most of the requests that are not complete
  kGrpcUnread,         ///< one that does not read its answers
  kGrpcCompressed,     ///< a compressed request
  kPluginPath,         ///< a directory or socket in which others could pose as a plugin
  kHttpConnections,    ///< a connection that made room for another
  kHttpRequest,        ///< a request that is too long, or whose body made room for others
  kTlsHandshake,       ///< a client without TLS, or without a certificate that counts
  kHttpToken,          ///< a client without a token that may ask
  kWebPage,            ///< a call that a web page may have sent
  kJson,               ///< a text beyond the bounds
  kYaml,
  kNodeAnnotation,  ///< what a node publishes of itself, and cannot be read
  kPlacement,       ///< a placement on a pod that is none of qrm-scheduler's
  kCount,
};

inline constexpr std::size_t kMostRejectedLines = 30;

/// Counts one, and logs `error` at most once a minute, and of each kind at most kMostRejectedLines
/// different ones a minute. Threads: any.
void Reject(Rejected kind, const std::string& error);

/// How many since the start. Threads: any.
uint64_t RejectedSoFar(Rejected kind);

enum class RejectedBy { kDaemon, kScheduler };

struct RejectedCount {
  std::string_view kind;  ///< a label's value, such as "grpc_frames"
  uint64_t count = 0;
};

/// Each kind that the program may reject. Threads: any.
std::vector<RejectedCount> RejectedByKind(RejectedBy program);

}  // namespace qrm
