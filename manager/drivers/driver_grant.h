// Checks what a compute driver gave, and turns it into what is recorded.
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

/// What an answer is held against.
struct GrantLimits {
  const DriverOffer& offer;
  double cpus = 0;  ///< requested
  const Machine& machine;
  bool pool_is_followed = false;  ///< a cpu plugin tells how the default pool changes
};

/// OK when `grant` has only CPUs that were offered and no more than requested, shares only CPUs of
/// the default pool of which one is left, leaves that pool one, and no text that a runtime would
/// fail on. Errors: kInvalidArgument for what breaks the offer, kResourceExhausted for a pool that
/// would be empty; one sentence.
Status CheckGrant(const sdk::ComputeGrant& grant, const GrantLimits& limits);

/// OK when the memory nodes of `grant` are among those of `memory`, the memory plugin's allocation
/// or null. Errors: kInvalidArgument naming both.
Status CheckMems(const sdk::ComputeGrant& grant, const ResourceAllocation* memory);

/// The records of `grant` under `resource`, its driver: the container's CPUs with variables and
/// annotations, and its memory nodes where the driver gave any.
AllocationByResource RecordsOf(const std::string& resource, const sdk::ComputeGrant& grant,
                               const Machine& machine);

/// The same as an allocation of the cpu plugin: all CPUs that it must withhold, also idle ones, and
/// those of `pool`, the default one before the grant, that the container shares.
ResourceAllocation WithheldBy(const sdk::ComputeGrant& grant, const Machine& machine,
                              const CpuSet& pool);

}  // namespace qrm::manager
