// A plugin inside this process: the registry's calls to it, without gRPC between.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "api/base/status.h"
#include "manager/registry/calls/plugin_client.h"
#include "manager/rpc/calls_in_flight.h"
#include "plugins/sdk/plugin.h"
#include "plugins/sdk/plugin_state.h"

namespace qrm::manager {

/// A plugin, its thread, its grants and their state: what sdk::PluginHost serves on a socket, for
/// callers in the same process. Results arrive on the plugin's thread, or at their deadline on
/// `io`'s. A call whose caller has gone is not begun.
class LocalPlugin final : public PluginClient {
 public:
  struct Parts {
    boost::asio::io_context& io;
    NumaMask machine_nodes;                ///< answers that name other nodes break the protocol
    std::shared_ptr<CallsInFlight> calls;  ///< of the registry that it is added to
  };

  /// Runs `plugin`, which outlives the result, for `resource`; it has its former grants back when
  /// this returns. Errors: the state's, or the plugin's from Restore.
  static StatusOr<std::unique_ptr<LocalPlugin>> Start(sdk::ResourcePlugin& plugin,
                                                      const std::string& resource,
                                                      std::unique_ptr<sdk::PluginState> state,
                                                      Parts parts);
  /// Finishes the calls in progress.
  ~LocalPlugin() override;
  LocalPlugin(const LocalPlugin&) = delete;
  LocalPlugin& operator=(const LocalPlugin&) = delete;

  /// `listener` hears of every change of allocations that no call of the manager made; it must not
  /// block. The former one is not called any more when this returns; an empty one hears nothing.
  void OnChanged(std::function<void()> listener);

  /// Runs `task` on the plugin's thread. It must not throw.
  void Post(std::function<void()> task);

  std::shared_ptr<grpc::Channel> channel() const override { return nullptr; }
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

 private:
  struct Impl;
  explicit LocalPlugin(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::manager
