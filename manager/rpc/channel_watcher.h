// Reports at once when the connection behind a gRPC channel comes or goes.
#pragma once

#include <functional>

#include "api/base/hidden.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace qrm::manager {

/// One thread that waits for all watched channels; it wakes only when a connection changes. gRPC
/// offers its connection states through a completion queue only, hence a thread and no callback.
///
/// Threads: any.
class ChannelWatcher {
 public:
  /// Runs on the watcher's thread; must not block.
  using Changed = std::function<void(bool connected)>;

  ChannelWatcher();
  /// Ends the thread. Waits until every watched channel is gone: drop them first.
  ~ChannelWatcher();
  ChannelWatcher(const ChannelWatcher&) = delete;
  ChannelWatcher& operator=(const ChannelWatcher&) = delete;

  /// Calls `changed` whenever `channel`, taken to be connected now, loses or gets its connection,
  /// for as long as somebody else holds it.
  void Watch(grpc::Channel& channel, Changed changed);

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::manager
