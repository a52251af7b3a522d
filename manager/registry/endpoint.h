// One registered plugin: its liveness, its latest problem, and calls that fail at once while it is
// not running.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "manager/registry/calls/plugin_client.h"
#include "manager/registry/plugin_info.h"
#include "manager/rpc/channel_watcher.h"
#include "plugins/sdk/calls/plugin_calls.h"

namespace qrm::manager {

/// How plugins are probed.
struct ProbeSettings {
  std::chrono::milliseconds deadline{1000};  ///< for the answer to GetResourcePluginOptions
  std::chrono::milliseconds interval{500};   ///< between two probes while the plugin does not run

  /// Runs on a gRPC thread when a plugin answers again, before it counts as live, so that its lost
  /// allocations can be restored first. It calls `ready` once and must not block. It is called
  /// again if the plugin stops meanwhile.
  using Prepare =
      std::function<void(const PluginInfo& plugin, const std::shared_ptr<PluginClient>& client,
                         std::function<void()> ready)>;
  Prepare prepare = [](const PluginInfo&, const std::shared_ptr<PluginClient>&,
                       const std::function<void()>& ready) { ready(); };
  /// Runs on a gRPC thread, or the caller's, when a plugin was registered, stops running, or runs
  /// again, with what happened; must only post.
  std::function<void(const std::string& resource, const std::string& what)> on_change =
      [](const std::string&, const std::string&) {};
};

/// Where a plugin's options come from: its registration, or its answer to the probe.
enum class OptionsFrom { kRegistration, kProbe };

/// A plugin behind a socket or inside this process. Live means: it answered
/// GetResourcePluginOptions, and its connection has not broken since. A broken connection is
/// noticed and probed at once; a plugin that does not answer counts as not running until it does.
///
/// Threads: any. No lock is held while a call starts or a callback runs.
class Endpoint : public std::enable_shared_from_this<Endpoint> {
 public:
  /// Runs on a gRPC thread each time the plugin runs again; must only post.
  using OnBack = std::function<void(const std::string& resource)>;

  /// `info` identifies the plugin. The endpoint is not live until Probe succeeds. With a null
  /// `client` it never is, if `info` does not say so: the plugin is known only by its recorded
  /// allocations, or runs inside this process.
  Endpoint(PluginInfo info, OptionsFrom options_from, std::shared_ptr<PluginClient> client,
           ProbeSettings settings);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  PluginInfo Info() const;
  bool live() const;

  /// Asks the plugin for its options; `done` gets OK if it is live now.
  /// Errors: kUnavailable or kDeadlineExceeded with the cause; kFailedPrecondition for a server
  /// without this call, which every plugin must serve.
  void Probe(std::function<void(Status)> done);

  /// Begins to follow the connection: notices when it breaks and when the plugin runs again. Called
  /// once, after the first successful probe; sets the time of registration.
  void Follow(ChannelWatcher& watcher, OnBack on_back);

  /// Ends the endpoint for the reason `why` and drops its connection. Calls in flight end by
  /// themselves.
  void Close(const std::string& why);

  /// Shows `problem` until the plugin makes a valid allocation, unless it is not running.
  void MarkSuspect(const std::string& problem);

  /// Starts `call` on the plugin, and judges its result: the call's action completes the sentence
  /// "cannot <action> plugin cpu at ...". `ended` gets the status before the caller, on the same
  /// thread. Returns false and starts nothing while the plugin is not running.
  /// Errors: those of PluginClient.
  bool Start(const std::shared_ptr<calls::Call>& call, Deadline deadline,
             std::function<void(const Status&)> ended);
  /// Updates whether the plugin is suspect after a call. Returns `status` as a sentence, with
  /// kInternal for an answer that breaks the protocol.
  Status Judge(const calls::Method& method, const Status& status, calls::Blame blame);
  /// Why `action` cannot be done while the plugin is not running.
  Status Away(std::string_view action) const;

 private:
  struct RetryTimer;
  using OptionsResult = calls::CallTo<calls::GetOptions>::Result;

  std::shared_ptr<PluginClient> LiveClient() const;
  /// The connection broke, or may work again: probes the plugin, unless a probe is under way.
  void Doubt();
  void ProbeEnded(const OptionsResult& result, const std::function<void(Status)>& done);
  void Prepare(const OptionsResult& result, const std::function<void(Status)>& done);
  void TakeAnswer(const OptionsResult& result);
  void TakeFailure(const Status& cause);
  void RetryLater();
  std::string Name() const;

  const std::string resource_;
  const std::string address_;
  const OptionsFrom options_from_;
  const ProbeSettings settings_;

  mutable Mutex mutex_;
  PluginInfo info_ QRM_GUARDED_BY(mutex_);
  /// The plugin is suspect until the next good answer to this call; empty: to an allocation call.
  std::string_view suspect_of_ QRM_GUARDED_BY(mutex_);
  std::shared_ptr<PluginClient> client_ QRM_GUARDED_BY(mutex_);  ///< null: closed
  bool probing_ QRM_GUARDED_BY(mutex_) = false;
  OnBack on_back_ QRM_GUARDED_BY(mutex_);
  std::unique_ptr<RetryTimer> retry_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
