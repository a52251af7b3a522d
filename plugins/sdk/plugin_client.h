// Calls a plugin by its socket, for the fake manager.
#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "api/base/status.h"
#include "plugins/sdk/calls/call.h"

namespace qrm::sdk {

/// A client of the plugin that listens on one socket. Every call waits for its answer, at most ten
/// seconds.
///
/// Threads: any. Errors: the plugin's; kUnavailable when no process listens; kInvalidArgument for
/// an answer that breaks the protocol.
class PluginClient {
 public:
  explicit PluginClient(const std::string& socket);
  ~PluginClient();
  PluginClient(const PluginClient&) = delete;
  PluginClient& operator=(const PluginClient&) = delete;

  /// The plugin's answer to the call that `C` describes.
  template <typename C>
  StatusOr<typename C::Answer> Ask(typename C::Request request) {
    using Call = calls::CallTo<C>;
    const auto answer = std::make_shared<std::promise<typename Call::Result>>();
    Send(std::make_shared<Call>(std::move(request), [answer](typename Call::Result result) {
      answer->set_value(std::move(result));
    }));
    return answer->get_future().get().value;
  }

 private:
  struct Impl;

  void Send(const std::shared_ptr<calls::Call>& call);

  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::sdk
