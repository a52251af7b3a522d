// Chooses the CPUs of a specification: values in, values out.
#pragma once

#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "plugins/cci/cpu_knobs.h"
#include "plugins/cci/spec.h"
#include "plugins/sdk/compute_driver.h"
#include "topology/cpu_layout.h"

namespace qrm::cci {

/// The CPUs to choose from for one container.
struct Room {
  CpuSet available;
  NumaMask near;              ///< nodes that suit its other resources; empty: any
  int cpus = 0;               ///< whole CPUs that the container requests
  CpuSet shared;              ///< the default pool
  bool has_fraction = false;  ///< it also requests a fraction of a CPU
  /// Of a running container: the CPUs of each line, which it keeps where it can.
  std::vector<CpuSet> kept;
};

/// Chooses CPUs for `spec`: one part per line, named by the attributes in effect. Optional
/// attributes that conflict with required ones, or with earlier optional ones, become unmet, with
/// the reason. The exclusive, idle and shared CPUs add up to the request; a fraction of a CPU must
/// be shared. Values of the machine are checked by `knobs`. Errors, with line, attribute and
/// remedy: kResourceExhausted when too few CPUs are free, kInvalidArgument for attributes that this
/// machine, driver or request cannot have. Cost: one choice per optional attribute if they cannot
/// all be kept.
StatusOr<sdk::ComputeGrant> Choose(const SpecLines& spec, const Room& room, const CpuLayout& layout,
                                   const kernel::TunableMachine& knobs);

}  // namespace qrm::cci
