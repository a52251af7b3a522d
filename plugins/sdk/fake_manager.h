// A manager for plugin tests: accepts registrations by either path and makes qrmd's calls to
// plugins.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/sdk/compute_driver.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// A plugin, or a compute driver, as the fake manager knows it.
struct RegisteredPlugin {
  std::string socket;
  PluginOptions options;
  int registrations = 0;  ///< how often it registered with this manager
};

/// Serves registrations below one directory and calls the plugins over their sockets; every call
/// has a deadline of ten seconds. Starting it again on the same directory is a restarted manager.
///
/// Threads: any.
class FakeManager {
 public:
  /// Creates <root>/resource-plugins, whose kubelet.sock serves Register, <root>/plugins_registry,
  /// which is watched, and <root>/control.sock. Like qrmd, it first removes the sockets of earlier
  /// runs from resource-plugins.
  static StatusOr<std::unique_ptr<FakeManager>> Start(const std::string& root);
  /// Stops like a killed process: kubelet.sock stays.
  ~FakeManager();
  FakeManager(const FakeManager&) = delete;
  FakeManager& operator=(const FakeManager&) = delete;

  std::string registration_dir() const;
  std::string plugins_dir() const;
  /// Serves NotifyChanged, like qrmd's control socket.
  std::string control_socket() const;

  /// Waits until the plugin of `resource` has registered `registrations` times. Errors:
  /// kDeadlineExceeded after `limit`.
  StatusOr<RegisteredPlugin> WaitForPlugin(
      const std::string& resource, int registrations = 1,
      std::chrono::milliseconds limit = std::chrono::seconds(10));

  /// How often the plugin of `resource` notified changed allocations; one notification may cover
  /// several changes.
  int notifications(const std::string& resource) const;

  /// Admits one container as qrmd does: gets hints, chooses the first preferred one (else the
  /// first), and allocates. Errors: the plugin's; kResourceExhausted when it returns no hint.
  StatusOr<ResourceAllocation> Admit(ContainerRequest request);

  // The calls to a compute driver, whose resource DriverResource names. Errors: the driver's;
  // kNotFound without it.
  StatusOr<ComputeGrant> ComputeAdmit(const ComputeRequest& request);
  Status ComputeAdd(const ComputeInstance& instance);
  Status ComputeRemove(const ComputeRemoval& removal);

  // The single calls. Errors: the plugin's; kNotFound without a plugin of that resource.
  StatusOr<HintList> Hints(const ContainerRequest& request);
  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request);
  Status RemovePod(const std::string& resource, const std::string& pod_uid);
  Status ReleaseContainer(const std::string& resource, const ContainerKey& key);
  StatusOr<std::map<ContainerKey, ResourceAllocation>> Reconcile(const std::string& resource);
  StatusOr<AllocatableResource> Allocatable(const std::string& resource);
  StatusOr<std::vector<Pool>> Pools(const std::string& resource);
  StatusOr<std::vector<Pool>> SetPools(const std::string& resource,
                                       const std::map<std::string, CpuSet>& cpus_by_pool);
  StatusOr<std::string> ExportState(const std::string& resource);

 private:
  struct Impl;
  explicit FakeManager(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace qrm::sdk
