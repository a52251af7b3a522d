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
#include "manager/registry/calls/grpc_plugin_client.h"
#include "manager/registry/endpoint.h"
#include "manager/registry/plugins.h"
#include "manager/rpc/calls_in_flight.h"
#include "manager/rpc/channel_watcher.h"

namespace qrm::manager {

/// A plugin that wants to be registered, on either path. `socket` exists and the names are valid.
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

  /// Adds a plugin inside this process, which outlives the set and counts its calls in `calls()`.
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
  const std::shared_ptr<CallsInFlight>& calls() const { return calls_; }

  std::vector<PluginInfo> List() const override;
  std::optional<PluginInfo> Find(const std::string& resource) const override;
  void MarkSuspect(const std::string& resource, const std::string& problem) override;
  std::vector<StatusOr<HintList>> GetTopologyHints(const std::vector<ContainerRequest>& requests,
                                                   Deadline deadline) override;
  std::vector<StatusOr<AllocationByResource>> Allocate(
      const std::vector<ContainerRequest>& requests, Deadline deadline) override;
  std::map<std::string, Status> RemovePod(const std::string& pod_uid,
                                          const std::vector<std::string>& resources,
                                          Deadline deadline) override;
  std::map<std::string, Status> ReleaseContainer(const ContainerKey& key,
                                                 const std::vector<std::string>& resources,
                                                 Deadline deadline) override;
  void GetResourcesAllocation(const std::set<std::string>& resources, Deadline deadline,
                              std::function<void(AllocationsByPlugin)> done) override;
  void GetAllocatable(
      Deadline deadline,
      std::function<void(std::map<std::string, StatusOr<AllocatableByResource>>)> done) override;
  void GetPlacement(const ContainerKey& key, const std::string& resource, Deadline deadline,
                    std::function<void(StatusOr<PlacedByResource>)> done) override;
  void GetPools(const std::string& resource, Deadline deadline, PoolsCallback done) override;
  void SetPools(const std::string& resource, const std::map<std::string, std::string>& cpus_by_pool,
                Deadline deadline, PoolsCallback done) override;

 private:
  using EndpointPtr = std::shared_ptr<Endpoint>;
  enum class Interest { kAnyLive, kNeedsReconcile };
  /// What is asked of a plugin.
  struct Question {
    const char* method;  ///< as in the API
    const char* action;  ///< as in "cannot <action> plugin cpu"
  };

  EndpointPtr Lookup(const std::string& resource) const;
  std::vector<EndpointPtr> Live(Interest interest) const;
  std::vector<EndpointPtr> Live(const std::set<std::string>& resources) const;
  EndpointPtr NewEndpoint(const Registration& registration) const;
  void Enroll(const Registration& registration, std::function<void(Status)> done);
  Status Install(const EndpointPtr& endpoint);

  /// `done`, after the call was told to on_call.
  template <typename T>
  AnswerCallback<T> Observed(const std::string& resource, const Question& question,
                             AnswerCallback<T> done) const;
  /// Asks the plugin of `resource`, or answers kNotFound.
  template <typename T>
  void AskOne(const std::string& resource, const Question& question,
              const std::function<void(PluginClient&, PluginClient::Done<T>)>& call,
              AnswerCallback<T> done) const;
  template <typename T>
  std::map<std::string, Status> TellEach(
      const std::vector<std::string>& resources, const Question& question, Deadline deadline,
      const std::function<void(PluginClient&, PluginClient::Done<T>)>& call) const;
  template <typename T>
  void AskEach(std::vector<EndpointPtr> live, const Question& question,
               const std::function<void(PluginClient&, PluginClient::Done<T>)>& call,
               std::function<void(std::map<std::string, StatusOr<T>>)> done) const;

  const EndpointSetOptions options_;
  const std::shared_ptr<CallsInFlight> calls_;
  mutable Mutex mutex_;
  std::map<std::string, EndpointPtr> endpoints_ QRM_GUARDED_BY(mutex_);
  ChannelWatcher watcher_;
};

}  // namespace qrm::manager
