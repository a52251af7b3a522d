// Reports at once when the connection behind a gRPC channel is established or lost.
#pragma once

#include <functional>

#include "api/base/hidden.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace qrm::manager {

/// One thread that waits for all watched channels and wakes only when a connection changes. It
/// needs a thread because gRPC reports connection states only through a completion queue.
///
/// Threads: any.
class ChannelWatcher {
 public:
  /// Runs on the watcher's thread; must not block.
  using Changed = std::function<void(bool connected)>;

  ChannelWatcher();
  /// Ends the thread. Waits until every watched channel is destroyed: drop the channels first.
  ~ChannelWatcher();
  ChannelWatcher(const ChannelWatcher&) = delete;
  ChannelWatcher& operator=(const ChannelWatcher&) = delete;

  /// Calls `changed` whenever `channel` loses or gets its connection, until the channel is
  /// destroyed; the watcher does not keep it alive. It counts as connected now.
  void Watch(grpc::Channel& channel, Changed changed);

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::manager
