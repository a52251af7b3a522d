// The interface through which the manager calls the registered plugins: in parallel, with
// deadlines, and without knowing gRPC. Plugins inside qrmd are called directly.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/base/clock.h"
#include "api/base/status.h"
#include "manager/registry/calls/fan_out.h"
#include "manager/registry/calls/local_plugin.h"
#include "manager/registry/plugin_info.h"
#include "plugins/sdk/calls/call.h"
#include "plugins/sdk/calls/extension_calls.h"
#include "plugins/sdk/calls/plugin_calls.h"

namespace qrm::manager {

/// The result of each plugin for a call to several plugins.
template <typename T>
using ByPlugin = std::map<std::string, StatusOr<T>>;

/// The plugins' answers to GetResourcesAllocation.
using AllocationsByPlugin = ByPlugin<calls::HeldAllocations>;

/// Calls to plugins, named by the resource they serve. `C` is the description of a call, such as
/// calls::Allocate. A call to a plugin that is not running fails at once with kUnavailable and a
/// sentence that names the plugin and its socket. A call without an answer at its deadline fails
/// with kDeadlineExceeded, and a later answer is dropped. An answer that breaks the protocol is
/// kInternal and marks the plugin suspect until its next good answer to that call.
///
/// A plugin inside qrmd answers before the call returns, with its own errors.
///
/// Threads: any; blocking calls only on the state loop, and hints also in dry runs.
class Plugins {
 public:
  virtual ~Plugins() = default;

  virtual std::vector<PluginInfo> List() const = 0;
  virtual std::optional<PluginInfo> Find(const std::string& resource) const = 0;

  /// Shows the plugin as suspect because of `problem`, one sentence, until it makes a valid
  /// allocation. For answers that are well-formed but impossible, such as CPUs that another
  /// container owns.
  virtual void MarkSuspect(const std::string& resource, const std::string& problem) = 0;

  /// Removes a plugin that is not live: it is unknown until it registers again.
  virtual void Forget(const std::string& resource) = 0;

  /// `done` runs once, on the thread that brings the answer or at once: it must only post.
  template <typename C>
  void Ask(const std::string& resource, typename C::Request request, Deadline deadline,
           AnswerCallback<typename C::Answer> done) {
    if (LocalPlugin* const local = Local(resource); local != nullptr) {
      const auto begun = std::chrono::steady_clock::now();
      StatusOr<typename C::Answer> answer = local->Answer<C>(request);
      NoteAnswer(resource, C::kMethod, begun, answer.status());
      done(std::move(answer));
      return;
    }
    auto call = std::make_shared<calls::CallTo<C>>(
        std::move(request), [done = std::move(done)](typename calls::CallTo<C>::Result result) {
          done(std::move(result.value));
        });
    Start(resource, std::move(call), deadline);
  }

  /// Sends each request to the plugin of its resource, all in parallel, and waits for the answers.
  /// They are in the order of the requests.
  template <typename C>
  std::vector<StatusOr<typename C::Answer>> AskForEach(
      const std::vector<typename C::Request>& requests, Deadline deadline) {
    std::vector<StatusOr<typename C::Answer>> answers(requests.size());
    std::vector<std::size_t> away;  // at plugins that are processes
    for (std::size_t index = 0; index < requests.size(); ++index) {
      if (Local(requests[index].resource) == nullptr) {
        away.push_back(index);
      }
    }
    ParallelCalls<typename C::Answer> calls(
        away.size(), [&](std::size_t number, AnswerCallback<typename C::Answer> answer) {
          const typename C::Request& request = requests[away[number]];
          Ask<C>(request.resource, request, deadline, std::move(answer));
        });
    for (std::size_t index = 0; index < requests.size(); ++index) {
      const typename C::Request& request = requests[index];
      if (LocalPlugin* const local = Local(request.resource); local != nullptr) {
        const auto begun = std::chrono::steady_clock::now();
        answers[index] = local->Answer<C>(request);
        NoteAnswer(request.resource, C::kMethod, begun, answers[index].status());
      }
    }
    std::vector<StatusOr<typename C::Answer>> theirs = calls.Await(deadline);
    for (std::size_t number = 0; number < away.size(); ++number) {
      answers[away[number]] = std::move(theirs[number]);
    }
    return answers;
  }

  /// Sends the same request to the plugins of `resources`, in parallel, and waits for all answers.
  template <typename C>
  std::map<std::string, Status> Tell(const std::vector<std::string>& resources,
                                     const typename C::Request& request, Deadline deadline) {
    const auto answers = FanOut<typename C::Answer>(
        resources.size(), deadline,
        [&](std::size_t index, AnswerCallback<typename C::Answer> answer) {
          Ask<C>(resources[index], request, deadline, std::move(answer));
        });
    std::map<std::string, Status> results;
    for (std::size_t index = 0; index < resources.size(); ++index) {
      results.emplace(resources[index], answers[index].status());
    }
    return results;
  }

  /// Sends the same request to the plugins of `resources`, in parallel; `done` as for Ask, with all
  /// answers.
  template <typename C>
  void AskAll(const std::vector<std::string>& resources, const typename C::Request& request,
              Deadline deadline, std::function<void(ByPlugin<typename C::Answer>)> done) {
    AskEach<C>(resources, [&](const std::string&) { return request; }, deadline, std::move(done));
  }

  /// The same with `request_for`(resource).
  template <typename C, typename RequestFor>
  void AskEach(const std::vector<std::string>& resources, const RequestFor& request_for,
               Deadline deadline, std::function<void(ByPlugin<typename C::Answer>)> done) {
    FanOutThen<typename C::Answer>(
        resources.size(),
        [&](std::size_t index, AnswerCallback<typename C::Answer> answer) {
          Ask<C>(resources[index], request_for(resources[index]), deadline, std::move(answer));
        },
        [resources, done = std::move(done)](std::vector<StatusOr<typename C::Answer>> answers) {
          ByPlugin<typename C::Answer> by_plugin;
          for (std::size_t index = 0; index < resources.size(); ++index) {
            by_plugin.emplace(resources[index], std::move(answers[index]));
          }
          done(std::move(by_plugin));
        });
  }

  /// The resources whose plugins are live and `wanted`, a predicate of PluginInfo.
  template <typename Wanted>
  std::vector<std::string> Live(Wanted wanted) const {
    std::vector<std::string> live;
    for (const PluginInfo& info : List()) {
      if (info.live && wanted(info)) {
        live.push_back(info.resource);
      }
    }
    return live;
  }

  /// The plugin of `resource` if it runs inside qrmd; else null.
  virtual LocalPlugin* Local(const std::string& /*resource*/) const { return nullptr; }

  /// Starts `call` to the plugin of `resource`, or ends it at once.
  virtual void Start(const std::string& resource, std::shared_ptr<calls::Call> call,
                     Deadline deadline) = 0;

 protected:
  /// Notes that the plugin of `resource`, which runs inside qrmd, was asked `method` at `begun` and
  /// has just answered.
  virtual void NoteAnswer(const std::string& /*resource*/, const calls::Method& /*method*/,
                          std::chrono::steady_clock::time_point /*begun*/,
                          const Status& /*status*/) {}
};

}  // namespace qrm::manager
