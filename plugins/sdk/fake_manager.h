// A manager for plugin tests: takes registrations by either path and asks a plugin what qrmd asks.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// A plugin as the fake manager knows it.
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
  /// Makes <root>/resource-plugins, whose kubelet.sock takes Register,
  /// <root>/plugins_registry, which is watched, and <root>/control.sock. As qrmd does, it first
  /// removes the sockets of former runs from the first of them.
  static StatusOr<std::unique_ptr<FakeManager>> Start(const std::string& root);
  /// Stops as a process that is killed: kubelet.sock stays.
  ~FakeManager();
  FakeManager(const FakeManager&) = delete;
  FakeManager& operator=(const FakeManager&) = delete;

  std::string registration_dir() const;
  std::string plugins_dir() const;
  /// Takes NotifyChanged, as qrmd's control socket does.
  std::string control_socket() const;

  /// The plugin of `resource` once it registered `registrations` times. Errors: kDeadlineExceeded
  /// when it does not within `limit`.
  StatusOr<RegisteredPlugin> WaitForPlugin(
      const std::string& resource, int registrations = 1,
      std::chrono::milliseconds limit = std::chrono::seconds(10));

  /// How often the plugin of `resource` said that its allocations changed; several changes may be
  /// told at once.
  int notifications(const std::string& resource) const;

  /// The plugin of `request.resource` gives one container what qrmd would ask of it: hints, the
  /// best of them (the first preferred one, else the first), the allocation. Errors: the plugin's;
  /// kResourceExhausted when it has no hint to give.
  StatusOr<ResourceAllocation> Admit(ContainerRequest request);

  // The calls one by one. Errors: the plugin's; kNotFound without a plugin of that resource.
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
