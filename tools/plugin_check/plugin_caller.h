// Calls the plugin that is checked, and runs it where the check is to start it.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <sys/types.h>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "api/id_set.h"
#include "api/rpc/calls_in_flight.h"
#include "manager/registry/calls/fan_out.h"
#include "manager/registry/calls/grpc_plugin_client.h"
#include "plugins/sdk/calls/call.h"
#include "tools/plugin_check/conformance.h"

namespace qrm::manager {

/// A shell's command with all that it starts. Killed with the object.
///
/// Threads: one.
class PluginProcess {
 public:
  explicit PluginProcess(std::string command) : command_(std::move(command)) {}
  ~PluginProcess() { Kill(); }
  PluginProcess(const PluginProcess&) = delete;
  PluginProcess& operator=(const PluginProcess&) = delete;

  /// Errors: kInternal, when the shell cannot be started; what the command does is not known yet.
  Status Start();
  /// kill -9, and waits for the end.
  void Kill();

 private:
  const std::string command_;
  pid_t group_ = 0;  // 0: none runs
};

/// One plugin on its socket. Threads: one; each call blocks.
class PluginCaller {
 public:
  /// `settings` outlives it.
  PluginCaller(const CheckSettings& settings, NumaMask machine_nodes);
  ~PluginCaller();
  PluginCaller(const PluginCaller&) = delete;
  PluginCaller& operator=(const PluginCaller&) = delete;

  /// Kills the plugin, if it runs by the command, starts it and waits until it answers. Errors: its
  /// latest answer, after five timeouts.
  Status RunAnew();

  /// Makes the call that `C` describes and waits for its answer.
  template <typename C>
  StatusOr<typename C::Answer> Ask(const typename C::Request& request) {
    using Answer = typename C::Answer;
    using Result = calls::CallResult<Answer>;
    const Deadline deadline = DeadlineAfter(settings_.timeout);
    const auto start = [&](std::size_t, const AnswerCallback<Result>& answer) {
      client_->Ask<C>(request, deadline, [answer](Result result) { answer(std::move(result)); });
    };
    StatusOr<Result> result = std::move(FanOut<Result>(1, deadline, start).front());
    refused_ = result.ok() && result->blame == calls::Blame::kRefusal &&
               !IsException(result->value.status());
    return result.ok() ? std::move(result->value) : StatusOr<Answer>(result.status());
  }

  /// Whether the latest call was answered with an error, which is the plugin's right; an exception
  /// is none.
  bool refused() const { return refused_; }

 private:
  /// Whether the plugin threw in place of an answer.
  static bool IsException(const Status& status);
  std::unique_ptr<GrpcPluginClient> Connect() const;

  const CheckSettings& settings_;
  const NumaMask machine_nodes_;
  PluginProcess process_;
  const std::shared_ptr<rpc::CallsInFlight> in_flight_;
  std::unique_ptr<GrpcPluginClient> client_;
  bool refused_ = false;
};

}  // namespace qrm::manager
