// Carries a compute driver by what the SDK has for resource plugins: socket, registration, thread,
// durable grants.
#pragma once

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/sdk/compute_driver.h"
#include "plugins/sdk/plugin_driver.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// A driver as the SDK runs it. Its grants are those of a resource plugin, whose allocation holds
/// the whole ComputeGrant; what the manager asks is in plugins/sdk/calls/compute_calls.h.
///
/// Threads: as ResourcePlugin.
class ComputePlugin final : public ResourcePlugin {
 public:
  /// `driver` outlives it.
  explicit ComputePlugin(ComputeDriver& driver) : driver_(driver) {}

  /// What the driver in `host` answers to `request`: what it gave before, if anything. Grants of
  /// others whose CPUs are offered again are none any more by the manager's records, and end first.
  /// Errors: the driver's; kUnavailable when it could not be kept; kUnimplemented when there is no
  /// driver.
  static StatusOr<ComputeGrant> Admit(PluginDriver& host, const ComputeRequest& request);
  static Status Add(PluginDriver& host, const ComputeInstance& instance);
  static Status Remove(PluginDriver& host, const ComputeRemoval& removal);

  PluginOptions Options() const override { return {.pre_start_required = driver_.NeedsAdd()}; }
  Status Restore(const Grants& grants) override;
  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request,
                                        const TopologyHint& hint) override;

 private:
  ComputeDriver& driver_;
  const ComputeRequest* asked_ = nullptr;  ///< while Admit waits for Allocate
};

/// DriverMain for a driver that reads flags of its own, by ParseSettings.
int DriverMain(const PluginSettings& settings, ComputeDriver& driver);

/// `grant` as the allocation that its record keeps, and back. Errors: kDataLoss for one that is not
/// of a driver.
ResourceAllocation ToAllocation(const ComputeGrant& grant);
StatusOr<ComputeGrant> GrantOf(const ResourceAllocation& allocation);

}  // namespace qrm::sdk
