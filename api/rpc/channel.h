// Opens clients' connections to unix sockets.
#pragma once

#include <memory>
#include <string>

#include "api/base/durations.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace qrm::rpc {

/// What differs between the peers.
struct ChannelOptions {
  /// The waits between attempts to connect grow from the first to the last value.
  std::chrono::milliseconds first_backoff{100};
  std::chrono::milliseconds most_backoff{2000};
  int max_message_bytes = 16 << 20;  ///< of an answer; -1 for any size
};

/// A channel to the socket at `path`, with a connection of its own: it connects at the first call,
/// without the backoff of a former channel, and keeps the connection while nothing is called.
/// Calls on it are never sent twice. Answers are asked for, and read, as they are, not compressed.
std::shared_ptr<grpc::Channel> UnixChannel(const std::string& path,
                                           const ChannelOptions& options = {});

}  // namespace qrm::rpc
