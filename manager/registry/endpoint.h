// One registered plugin: whether it is there, what was wrong with it last, and calls that fail at
// once when it is away.
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

/// When an endpoint is asked whether it is still there.
struct ProbeSettings {
  std::chrono::milliseconds deadline{1000};  ///< for the answer to GetResourcePluginOptions
  std::chrono::milliseconds interval{500};   ///< between two tries while the plugin is away

  /// Runs on a gRPC thread when a plugin that was away has answered, before it is live: somebody
  /// may let it learn what it lost. It calls `ready` once, must not block, and is called again when
  /// the plugin went away meanwhile.
  using Prepare =
      std::function<void(const PluginInfo& plugin, const std::shared_ptr<PluginClient>& client,
                         std::function<void()> ready)>;
  Prepare prepare = [](const PluginInfo&, const std::shared_ptr<PluginClient>&,
                       const std::function<void()>& ready) { ready(); };
};

/// Whose word counts for a plugin's options: its registration's, or its answer to the probe.
enum class OptionsFrom { kRegistration, kProbe };

/// A plugin behind a socket or inside this process. Live means: it answered
/// GetResourcePluginOptions and its connection has held since. A lost connection is noticed at once
/// and probed; a plugin that does not answer is away until it does.
///
/// Threads: any. No lock is held while a call starts or a callback runs.
class Endpoint : public std::enable_shared_from_this<Endpoint> {
 public:
  /// Runs on a gRPC thread each time a plugin that was away is back; must only post.
  using OnBack = std::function<void(const std::string& resource)>;

  /// `info` says who it is; the endpoint is away until Probe succeeds. With a null `client` it
  /// stays away, for a plugin known only by what it once allocated.
  Endpoint(PluginInfo info, OptionsFrom options_from, std::shared_ptr<PluginClient> client,
           ProbeSettings settings);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  PluginInfo Info() const;
  bool live() const;

  /// Asks the plugin for its options; `done` learns whether it is live now.
  /// Errors: kUnavailable or kDeadlineExceeded with the cause; kFailedPrecondition for a server
  /// that does not have the call, the first of the protocol: it is no plugin.
  void Probe(std::function<void(Status)> done);

  /// Notices from now on when the connection breaks, and when the plugin is back. Once, after the
  /// first successful probe; the time of registration is now.
  void Follow(ChannelWatcher& watcher, OnBack on_back);

  /// The plugin is away for good, for the reason `why`; its connection is dropped. Calls in flight
  /// end by themselves.
  void Close(const std::string& why);

  /// Shows `problem` until the plugin places a container well, unless it is away.
  void MarkSuspect(const std::string& problem);

  /// Starts `call` on the plugin, unless it is away, and judges how it went: the call's action
  /// completes the sentence "cannot <action> plugin cpu at ...". `ended` learns it before the
  /// caller does, on the same thread. False when the plugin is away: nothing was started then.
  /// Errors: those of PluginClient.
  bool Start(const std::shared_ptr<calls::Call>& call, Deadline deadline,
             std::function<void(const Status&)> ended);
  /// Why `action` cannot be done while the plugin is away.
  Status Away(std::string_view action) const;

 private:
  struct RetryTimer;
  using OptionsResult = calls::CallTo<calls::GetOptions>::Result;

  std::shared_ptr<PluginClient> LiveClient() const;
  /// Updates the plugin's standing after a call; returns `status` as a sentence, with kInternal for
  /// an answer that breaks the protocol.
  Status Judge(const calls::Method& method, const Status& status, calls::Blame blame);
  /// Something is wrong with the connection, or may be right again: ask, unless that is under way.
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
  /// The call whose next good answer ends that the plugin is suspect; empty: one that places.
  std::string_view suspect_of_ QRM_GUARDED_BY(mutex_);
  std::shared_ptr<PluginClient> client_ QRM_GUARDED_BY(mutex_);  ///< null: away for good
  bool probing_ QRM_GUARDED_BY(mutex_) = false;                  ///< a doubt is being cleared
  OnBack on_back_ QRM_GUARDED_BY(mutex_);
  std::unique_ptr<RetryTimer> retry_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
