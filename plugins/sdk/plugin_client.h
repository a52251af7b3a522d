// Calls a plugin by its socket, for the fake manager.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/sdk/plugin.h"

namespace qrm::sdk {

/// What a watched plugin says of itself.
struct PluginIdentity {
  std::string type;
  std::string resource;
  std::vector<std::string> versions;
};

/// The plugin that listens on one socket. Every call waits for its answer, ten seconds at most.
///
/// Threads: any. Errors: the plugin's; kUnavailable when nobody listens; kInvalidArgument for an
/// answer that breaks the protocol.
class PluginClient {
 public:
  explicit PluginClient(const std::string& socket);
  ~PluginClient();

  StatusOr<PluginIdentity> GetInfo();
  /// Tells the plugin whether it is registered: an empty `refusal` says so.
  Status NotifyRegistrationStatus(const std::string& refusal);

  StatusOr<PluginOptions> Options();
  StatusOr<HintList> Hints(const ContainerRequest& request);
  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request);
  Status RemovePod(const std::string& pod_uid);
  Status ReleaseContainer(const ContainerKey& key);
  StatusOr<std::map<ContainerKey, ResourceAllocation>> Reconcile(const std::string& resource);
  StatusOr<AllocatableResource> Allocatable(const std::string& resource);
  StatusOr<std::vector<Pool>> Pools();
  StatusOr<std::vector<Pool>> SetPools(const std::map<std::string, CpuSet>& cpus_by_pool);
  StatusOr<std::string> ExportState();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::sdk
