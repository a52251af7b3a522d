// Calls a plugin by its socket, for the fake manager.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/base/cond_var.h"
#include "api/base/mutex.h"
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
    struct Answer {
      Mutex mutex;
      CondVar there;
      std::optional<typename Call::Result> result QRM_GUARDED_BY(mutex);
    };
    const auto answer = std::make_shared<Answer>();
    Send(std::make_shared<Call>(std::move(request), [answer](typename Call::Result result) {
      const MutexLock lock(answer->mutex);
      answer->result = std::move(result);
      answer->there.NotifyAll();
    }));
    const MutexLock lock(answer->mutex);
    answer->there.Wait(answer->mutex,
                       [&]() QRM_REQUIRES(answer->mutex) { return answer->result.has_value(); });
    return std::move(answer->result->value);
  }

 private:
  struct Impl;

  void Send(const std::shared_ptr<calls::Call>& call);

  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::sdk
