// The interface for calls to one plugin, in this process or another.
#pragma once

#include <memory>
#include <utility>

#include "api/base/clock.h"
#include "plugins/sdk/calls/call.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace qrm::manager {

/// Carries calls to one plugin. Each call ends by its deadline at the latest, is never sent twice,
/// and brings its result once, converted and checked, on any thread.
///
/// Threads: any.
/// Errors:  the plugin's own code if it rejects the call (kUnimplemented for an unknown call),
///          kUnavailable without a connection, kDeadlineExceeded, kInvalidArgument for an answer
///          that breaks the protocol.
class PluginClient {
 public:
  virtual ~PluginClient() = default;

  /// The connection; null for a plugin inside this process.
  virtual std::shared_ptr<grpc::Channel> channel() const = 0;

  virtual void Start(const std::shared_ptr<calls::Call>& call, Deadline deadline) = 0;

  /// Starts the call that `C` describes; `done` must not block.
  template <typename C>
  void Ask(typename C::Request request, Deadline deadline, typename calls::CallTo<C>::Done done) {
    Start(std::make_shared<calls::CallTo<C>>(std::move(request), std::move(done)), deadline);
  }
};

}  // namespace qrm::manager
