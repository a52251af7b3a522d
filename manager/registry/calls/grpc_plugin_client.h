// The calls to a plugin over its socket.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "manager/registry/calls/plugin_client.h"
#include "manager/rpc/calls_in_flight.h"

namespace qrm::manager {

/// What a socket in the watched directory says it is. Source: pluginregistration.PluginInfo.
struct PluginIdentity {
  std::string type;
  std::string name;
  std::string endpoint;
  std::vector<std::string> supported_versions;
};

/// The calls as resourceplugin.v1alpha1.ResourcePlugin, qrm.v1.PluginExtensions and
/// pluginregistration.Registration. Results arrive on a thread of gRPC, on the caller's when we are
/// stopping. Answers larger than kMaxAnswerBytes are refused.
class GrpcPluginClient final : public PluginClient {
 public:
  static constexpr int kMaxAnswerBytes = 16 << 20;

  /// A client of the plugin that listens on `socket`; connects at the first call. Hints for nodes
  /// outside `machine_nodes` break the protocol. `calls` is shared by all clients of one registry.
  GrpcPluginClient(const std::string& socket, NumaMask machine_nodes,
                   std::shared_ptr<CallsInFlight> calls);
  ~GrpcPluginClient() override;
  GrpcPluginClient(const GrpcPluginClient&) = delete;
  GrpcPluginClient& operator=(const GrpcPluginClient&) = delete;

  std::shared_ptr<grpc::Channel> channel() const override;

  void GetOptions(Deadline deadline, Done<PluginOptions> done) override;
  void GetTopologyHints(const ContainerRequest& request, Deadline deadline,
                        Done<HintList> done) override;
  void Allocate(const ContainerRequest& request, Deadline deadline,
                Done<AllocationByResource> done) override;
  void RemovePod(const std::string& pod_uid, Deadline deadline, Done<Acknowledged> done) override;
  void GetResourcesAllocation(Deadline deadline, Done<HeldAllocations> done) override;
  void GetAllocatable(Deadline deadline, Done<AllocatableByResource> done) override;
  void GetPlacement(const ContainerKey& key, Deadline deadline,
                    Done<PlacedByResource> done) override;
  void ReleaseContainer(const ContainerKey& key, Deadline deadline,
                        Done<Acknowledged> done) override;
  void GetPools(const std::string& resource, Deadline deadline,
                Done<std::vector<PoolInfo>> done) override;
  void SetPools(const std::string& resource, const StringMap& cpus_by_pool, Deadline deadline,
                Done<std::vector<PoolInfo>> done) override;

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
