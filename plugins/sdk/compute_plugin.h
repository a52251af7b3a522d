// Runs a compute driver on the SDK's parts for resource plugins: socket, registration, thread,
// durable grants.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include "api/base/status.h"
#include "api/id_set.h"
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
  explicit ComputePlugin(ComputeDriver& driver) : driver_(driver) {
    driver.request_changes_ = [this] { NotifyChanged(); };
  }

  /// The answer of the driver in `host` to `request`: the recorded grant, if there is one. Grants
  /// of other containers whose CPUs the manager offers again are obsolete and are removed first.
  /// For a container with CPUs, the answer is only proposed: Add with its CPUs records it. Errors:
  /// the driver's; kUnavailable when the grant could not be written; kUnimplemented when `host` has
  /// no driver.
  static StatusOr<ComputeGrant> Admit(PluginDriver& host, const ComputeRequest& request);
  /// As ComputeDriver::Hints.
  static StatusOr<HintList> GetHints(PluginDriver& host, const ComputeRequest& request);
  static Status Add(PluginDriver& host, const ComputeInstance& instance);
  static Status Remove(PluginDriver& host, const ComputeRemoval& removal);

  PluginOptions Options() const override {
    return {.pre_start_required = driver_.NeedsAdd(),
            .with_topology_alignment = driver_.GivesHints(),
            .resizes = driver_.Resizes()};
  }
  Status Restore(const Grants& grants) override;
  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request,
                                        const TopologyHint& hint) override;

 private:
  /// The answer about a container with CPUs, which the manager has not put in force yet.
  struct Proposal {
    int64_t milli_cpus = 0;
    ComputeGrant grant;
  };
  using Decide = std::function<StatusOr<ComputeGrant>(ComputeDriver&)>;

  static StatusOr<ComputeGrant> Propose(PluginDriver& host, const ComputeRequest& request);
  static Status TakeUp(PluginDriver& host, const ContainerKey& key, const CpuSet& cpus);
  static StatusOr<ComputeGrant> Record(PluginDriver& host, const ContainerRequest& request,
                                       Recorded recorded, const Decide& decide);

  ComputeDriver& driver_;
  const Decide* decide_ = nullptr;  ///< while Record waits for Allocate
  std::map<ContainerKey, Proposal> proposals_;
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
