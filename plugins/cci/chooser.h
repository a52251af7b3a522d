// Chooses the CPUs of a specification: values in, values out.
#pragma once

#include "api/base/status.h"
#include "api/id_set.h"
#include "plugins/cci/cpu_knobs.h"
#include "plugins/cci/spec.h"
#include "plugins/sdk/compute_driver.h"
#include "topology/cpu_layout.h"

namespace qrm::cci {

/// From what the CPUs of one container are chosen.
struct Room {
  CpuSet available;
  NumaMask near;              ///< nodes that suit its other resources; none: any
  int cpus = 0;               ///< as many as the container requests, whole ones
  CpuSet shared;              ///< the default pool
  bool has_fraction = false;  ///< it requests a part of one more CPU
};

/// The CPUs of `spec`, a part for each line, whose name has the attributes that it keeps. Wishes
/// that cannot be kept beside what is required, and beside the wishes before them, are among the
/// unmet ones with the reason. As many CPUs are given, held idle, or shared, as requested, of which
/// a fraction of one is to be shared.
/// Errors: kResourceExhausted where too few CPUs are free, kInvalidArgument for what this machine,
/// this driver or this request cannot have; the line, the attribute and the cure.
/// What is set on the machine is checked by `knobs`. Cost: one choice for each wish, when they
/// cannot be kept together.
StatusOr<sdk::ComputeGrant> Choose(const SpecLines& spec, const Room& room, const CpuLayout& layout,
                                   const CpuKnobs& knobs);

}  // namespace qrm::cci
