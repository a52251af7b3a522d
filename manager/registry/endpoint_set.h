// All plugins that the daemon knows, by the resource they serve.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/rpc/calls_in_flight.h"
#include "manager/registry/calls/grpc_plugin_client.h"
#include "manager/registry/endpoint.h"
#include "manager/registry/plugins.h"
#include "manager/rpc/channel_watcher.h"

namespace qrm::manager {

/// The registration of a plugin, by call or by socket. `socket` exists and the names are valid. The
/// resource of a compute driver is sdk::DriverResource of its name.
struct Registration {
  std::string resource;
  std::string socket;
  RegisteredBy registered_by = RegisteredBy::kRegister;
  std::optional<PluginOptions> options;  ///< absent: the plugin is asked
};

/// A finished call to a plugin, for metrics.
struct PluginCallEvent {
  const std::string& resource;
  const char* method;  ///< as in the API: "Allocate"
  std::chrono::nanoseconds took{0};
  bool ok = false;
};

struct EndpointSetOptions {
  NumaMask machine_nodes;       ///< answers that name other nodes break the protocol
  std::set<std::string> known;  ///< resources of the checkpoint: not live until they register
  ProbeSettings probe;
  /// Runs on a gRPC thread when a plugin is registered or runs again; must only post.
  std::function<void(const std::string& resource)> on_registered = [](const std::string&) {};
  /// Runs on a gRPC thread, or on the caller's while the plugin is not running; must not wait.
  std::function<void(const PluginCallEvent& call)> on_call = [](const PluginCallEvent&) {};
};

/// The registered plugins; see Plugins for the calls. A plugin that stops stays listed as not
/// running, because its allocations remain.
///
/// Threads: any; the destructor must not run beside other members. It cancels the calls in flight
/// and waits for them, so that no callback runs afterwards.
class EndpointSet final : public Plugins {
 public:
  explicit EndpointSet(EndpointSetOptions options);
  ~EndpointSet() override;
  EndpointSet(const EndpointSet&) = delete;
  EndpointSet& operator=(const EndpointSet&) = delete;

  /// Adds a plugin inside this process, which outlives the set. Errors: kAlreadyExists for a
  /// resource that has a live plugin.
  Status AddBuiltIn(const std::string& resource, LocalPlugin& plugin);

  /// Registers a plugin that answers. It replaces a plugin that is not running or had the same
  /// socket. `done` runs once and must not block. Nothing changes on an error.
  /// Errors: kAlreadyExists when another socket or a built-in plugin serves the resource and
  /// answers; kUnavailable or kDeadlineExceeded when the new one does not.
  void Register(Registration registration, std::function<void(Status)> done);

  /// Marks the plugin of `resource` as not running because of `why`, if its socket is `socket`.
  void Withdraw(const std::string& resource, const std::string& socket, const std::string& why);

  /// A client of the socket at `socket`, which may belong to something else than a plugin; its
  /// calls end with the set.
  std::shared_ptr<GrpcPluginClient> Connect(const std::string& socket) const;

  std::vector<PluginInfo> List() const override;
  std::optional<PluginInfo> Find(const std::string& resource) const override;
  void MarkSuspect(const std::string& resource, const std::string& problem) override;
  void Forget(const std::string& resource) override;
  LocalPlugin* Local(const std::string& resource) const override;

 private:
  using EndpointPtr = std::shared_ptr<Endpoint>;

  void Start(const std::string& resource, std::shared_ptr<calls::Call> call,
             Deadline deadline) override;
  void NoteAnswer(const std::string& resource, const calls::Method& method,
                  std::chrono::steady_clock::time_point begun, const Status& status) override;

  EndpointPtr Lookup(const std::string& resource) const;
  EndpointPtr NewEndpoint(const Registration& registration) const;
  std::shared_ptr<PluginClient> ClientOf(const Registration& registration) const;
  void Enroll(const Registration& registration, std::function<void(Status)> done);
  Status Install(const EndpointPtr& endpoint);

  const EndpointSetOptions options_;
  const std::shared_ptr<rpc::CallsInFlight> in_flight_;
  mutable Mutex mutex_;
  std::map<std::string, EndpointPtr> endpoints_ QRM_GUARDED_BY(mutex_);
  std::map<std::string, LocalPlugin*> locals_ QRM_GUARDED_BY(mutex_);
  ChannelWatcher watcher_;
};

}  // namespace qrm::manager
