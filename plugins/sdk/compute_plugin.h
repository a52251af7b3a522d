// Runs a compute driver on the SDK's parts for resource plugins: socket, registration, thread,
// durable grants.
#pragma once

#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/sdk/compute_driver.h"
#include "plugins/sdk/plugin_driver.h"
#include "plugins/sdk/resource_plugin.h"

namespace cci::v1alpha1 {
class AdmitResponse;
}  // namespace cci::v1alpha1

namespace qrm::sdk {

/// A driver as the SDK runs it. Its grants are a resource plugin's grants, and each allocation
/// contains the whole ComputeGrant. The manager's calls are in plugins/sdk/calls/compute_calls.h.
///
/// Threads: as ResourcePlugin.
class ComputePlugin final : public ResourcePlugin {
 public:
  /// `driver` must outlive it.
  explicit ComputePlugin(ComputeDriver& driver) : driver_(driver) {}

  /// The answer of the driver in `host` to `request`: the recorded grant, if there is one. Grants
  /// of other containers whose CPUs the manager offers again are obsolete and are removed first.
  /// Errors: the driver's; kUnavailable when the grant could not be written; kUnimplemented when
  /// `host` has no driver.
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

/// Converts a grant to the allocation that is recorded, and back. Errors: kDataLoss for an
/// allocation that does not contain a driver's grant.
ResourceAllocation ToAllocation(const ComputeGrant& grant);
StatusOr<ComputeGrant> GrantOf(const ResourceAllocation& allocation);

::cci::v1alpha1::AdmitResponse ToWire(const ComputeGrant& grant);

/// Errors: kInvalidArgument for CPUs that cannot be read or are in two parts, for a grant without
/// exclusive CPUs, and for a set that differs from the union of its parts.
StatusOr<ComputeGrant> FromWire(const ::cci::v1alpha1::AdmitResponse& message);

}  // namespace qrm::sdk
