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

/// A plugin that wants to be registered, on either path. `socket` exists and the names are valid.
/// The name of a compute driver is what sdk::DriverResource makes of its own.
struct Registration {
  std::string resource;
  std::string socket;
  RegisteredBy registered_by = RegisteredBy::kRegister;
  std::optional<PluginOptions> options;  ///< absent: the plugin is asked
};

/// One call to a plugin that ended, for metrics.
struct PluginCallEvent {
  const std::string& resource;
  const char* method;  ///< as in the API: "Allocate"
  std::chrono::nanoseconds took{0};
  bool ok = false;
};

struct EndpointSetOptions {
  NumaMask machine_nodes;       ///< answers that name other nodes break the protocol
  std::set<std::string> known;  ///< resources of the checkpoint: away until they register
  ProbeSettings probe;
  /// Runs on a gRPC thread when a plugin is registered, or back after it was away; must only post.
  std::function<void(const std::string& resource)> on_registered = [](const std::string&) {};
  /// Runs on a gRPC thread, or on the caller's when the plugin is away; must not wait.
  std::function<void(const PluginCallEvent& call)> on_call = [](const PluginCallEvent&) {};
};

/// The registered plugins; see Plugins for the calls. A plugin that goes keeps its place and is
/// listed as away, for its allocations live on.
///
/// Threads: any, but the destructor runs alone: it cancels the calls in flight and waits for them,
/// so that no callback runs afterwards.
class EndpointSet final : public Plugins {
 public:
  explicit EndpointSet(EndpointSetOptions options);
  ~EndpointSet() override;
  EndpointSet(const EndpointSet&) = delete;
  EndpointSet& operator=(const EndpointSet&) = delete;

  /// Adds a plugin inside this process, which outlives the set and counts its calls among those
  /// `in_flight`.
  /// Threads: blocks for its options. Errors: kAlreadyExists for a resource that has a live plugin;
  /// what the plugin answers.
  Status AddBuiltIn(const std::string& resource, PluginClient& plugin);

  /// Registers a plugin that answers, in place of one that is away or had the same socket; `done`
  /// runs once and must not block. Nothing changes on an error.
  /// Errors: kAlreadyExists when another socket or a built-in plugin serves the resource and
  /// answers; kUnavailable or kDeadlineExceeded when the new one does not.
  void Register(Registration registration, std::function<void(Status)> done);

  /// The plugin of `resource`, if it is the one behind `socket`, is away from now on because `why`.
  void Withdraw(const std::string& resource, const std::string& socket, const std::string& why);

  /// A client of the socket at `socket`, which need not be a plugin's; its calls end with the set.
  std::shared_ptr<GrpcPluginClient> Connect(const std::string& socket) const;

  /// The calls that end with the set.
  const std::shared_ptr<rpc::CallsInFlight>& in_flight() const { return in_flight_; }

  std::vector<PluginInfo> List() const override;
  std::optional<PluginInfo> Find(const std::string& resource) const override;
  void MarkSuspect(const std::string& resource, const std::string& problem) override;
  void Forget(const std::string& resource) override;

 private:
  using EndpointPtr = std::shared_ptr<Endpoint>;

  void Start(const std::string& resource, std::shared_ptr<calls::Call> call,
             Deadline deadline) override;

  EndpointPtr Lookup(const std::string& resource) const;
  EndpointPtr NewEndpoint(const Registration& registration) const;
  std::shared_ptr<PluginClient> ClientOf(const Registration& registration) const;
  void Enroll(const Registration& registration, std::function<void(Status)> done);
  Status Install(const EndpointPtr& endpoint);

  const EndpointSetOptions options_;
  const std::shared_ptr<rpc::CallsInFlight> in_flight_;
  mutable Mutex mutex_;
  std::map<std::string, EndpointPtr> endpoints_ QRM_GUARDED_BY(mutex_);
  ChannelWatcher watcher_;
};

}  // namespace qrm::manager
