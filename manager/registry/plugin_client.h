// Everything that the manager asks of one plugin over its socket, converted and checked.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/clock.h"
#include "api/resource.h"
#include "api/status.h"
#include "manager/registry/calls_in_flight.h"
#include "manager/registry/plugins.h"

namespace grpc {
class Channel;
}  // namespace grpc

namespace qrm::manager {

/// Who is to blame for a call that brought no answer that we can use.
enum class Blame {
  kNobody,      ///< the answer is good
  kRefusal,     ///< the plugin answered with an error: its right
  kConnection,  ///< nobody is connected
  kTimeout,     ///< no answer in time
  kProtocol,    ///< the answer breaks the protocol
  kStopping,    ///< we are stopping
};

/// How a call went: `value` is the answer, or a cause without the words "cannot ...".
template <typename T>
struct CallResult {
  StatusOr<T> value;
  Blame blame = Blame::kNobody;
};

/// What a socket in the watched directory says it is. Source: pluginregistration.PluginInfo.
struct PluginIdentity {
  std::string type;
  std::string name;
  std::string endpoint;
  std::vector<std::string> supported_versions;
};

/// Nothing to say but that it worked.
struct Acknowledged {};

using AllocatableByResource = std::map<std::string, AllocatableResource>;

/// The calls to one plugin. Each ends by its deadline at the latest, is never sent twice, and
/// brings its result once, on a thread of gRPC (on the caller's when we are stopping); the callback
/// must not block. Answers larger than kMaxAnswerBytes are refused.
///
/// Threads: any.
/// Errors:  the plugin's own code for a refusal (kUnimplemented for a call that it does not have),
///          kUnavailable for a connection, kDeadlineExceeded, kInvalidArgument for an answer that
///          breaks the protocol.
class PluginClient {
 public:
  template <typename T>
  using Done = std::function<void(CallResult<T>)>;

  static constexpr int kMaxAnswerBytes = 16 << 20;

  /// A client of the plugin that listens on `socket`; connects at the first call. Hints for nodes
  /// outside `machine_nodes` break the protocol. `calls` is shared by all clients of one registry.
  static std::shared_ptr<PluginClient> Connect(const std::string& socket, NumaMask machine_nodes,
                                               std::shared_ptr<CallsInFlight> calls);
  /// A client on a channel that somebody else made.
  PluginClient(std::shared_ptr<grpc::Channel> channel, NumaMask machine_nodes,
               std::shared_ptr<CallsInFlight> calls);
  ~PluginClient();
  PluginClient(const PluginClient&) = delete;
  PluginClient& operator=(const PluginClient&) = delete;

  bool connected() const;
  const std::shared_ptr<grpc::Channel>& channel() const;

  void GetOptions(Deadline deadline, Done<PluginOptions> done);
  void GetTopologyHints(const ContainerRequest& request, Deadline deadline, Done<HintList> done);
  void Allocate(const ContainerRequest& request, Deadline deadline,
                Done<AllocationByResource> done);
  void RemovePod(const std::string& pod_uid, Deadline deadline, Done<Acknowledged> done);
  void GetResourcesAllocation(Deadline deadline, Done<HeldAllocations> done);
  void GetAllocatable(Deadline deadline, Done<AllocatableByResource> done);
  void GetPlacement(const ContainerKey& key, Deadline deadline, Done<PlacedByResource> done);

  // Our extensions; other plugins answer kUnimplemented.
  void ReleaseContainer(const ContainerKey& key, Deadline deadline, Done<Acknowledged> done);
  void GetPools(const std::string& resource, Deadline deadline, Done<std::vector<PoolInfo>> done);
  void SetPools(const std::string& resource, const StringMap& cpus_by_pool, Deadline deadline,
                Done<std::vector<PoolInfo>> done);

  // The watched directory's protocol. GetIdentity waits for a socket that is bound but does not
  // listen yet.
  void GetIdentity(Deadline deadline, Done<PluginIdentity> done);
  /// An empty `error` says that the plugin is registered.
  void Notify(const std::string& error, Deadline deadline, Done<Acknowledged> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
