// Checks the answer of a compute driver, and converts it into records.
#pragma once

#include <string>

#include "api/base/status.h"
#include "api/hint.h"
#include "api/resource.h"
#include "manager/drivers/driver_offer.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm {
class Machine;
}  // namespace qrm

namespace qrm::manager {

/// What an answer is checked against.
struct GrantLimits {
  const DriverOffer& offer;
  double cpus = 0;  ///< requested
  const Machine& machine;
  bool pool_is_followed = false;  ///< a cpu plugin reports changes of the default pool
};

/// OK if `grant` has only offered CPUs and no more than requested, shares only CPUs of the default
/// pool, leaves that pool at least one CPU, and has no text that a runtime would reject.
/// Errors: kInvalidArgument for a wrong answer, kResourceExhausted for a pool that would be empty;
/// one sentence.
Status CheckGrant(const sdk::ComputeGrant& grant, const GrantLimits& limits);

/// OK if the memory nodes of `grant` are a subset of those of `memory`, the memory plugin's
/// allocation or null. Errors: kInvalidArgument naming both.
Status CheckMems(const sdk::ComputeGrant& grant, const ResourceAllocation* memory);

/// The records of `grant` under its driver's name `resource`: the container's CPUs with variables
/// and annotations, and its memory nodes if the driver gave any.
AllocationByResource RecordsOf(const std::string& resource, const sdk::ComputeGrant& grant,
                               const Machine& machine);

/// The same as an allocation of the cpu plugin: all CPUs that it must withhold, including idle
/// ones, and the CPUs that the container shares in `pool`, the default pool before the grant.
ResourceAllocation WithheldBy(const sdk::ComputeGrant& grant, const Machine& machine,
                              const CpuSet& pool);

}  // namespace qrm::manager
