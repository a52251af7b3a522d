// The values that attributes set: on the machine, values in and values out, and on a container's
// threads.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "plugins/cci/attribute.h"
#include "plugins/kernel/claim.h"
#include "plugins/kernel/interrupts.h"
#include "plugins/kernel/kernel_files.h"
#include "plugins/kernel/knob.h"
#include "plugins/kernel/tunable_machine.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::cci {

/// Whether an attribute sets anything on the machine.
bool IsKnob(const Attribute& attribute);

/// OK if `attribute` can be set for `cpus` in a container that has `own`. Errors:
/// kFailedPrecondition with what is missing, and what to do.
Status CheckKnob(const Attribute& attribute, const CpuSet& cpus, const CpuSet& own,
                 const kernel::TunableMachine& machine);

/// The values for no-balance in a container's `cgroup` and its ancestors; `cgroup` is "/a/b" as in
/// ComputeInstance. Source: "Remote partition" in the kernel's admin-guide/cgroup-v2.
std::vector<kernel::Claim> PartitionClaims(const std::string& cgroup, const CpuSet& cpus);

/// The values that `attributes` of `cpus` set outside the cgroup, in the order of writing.
std::vector<kernel::Claim> ClaimsOf(const std::vector<Attribute>& attributes, const CpuSet& cpus,
                                    const kernel::TunableMachine& machine);

/// Finds the containers' threads, with cgroups below `cgroup_root`.
kernel::KnobMachine FindScheduling(const std::string& cgroup_root);

/// The attributes in `asked` that are possible on `machine`. Other optional attributes go to
/// `unmet`. Errors, with the remedy: kFailedPrecondition for a required attribute that is not
/// possible, kInvalidArgument if this driver does not support it.
StatusOr<std::vector<Attribute>> ChooseScheduling(const std::vector<Attribute>& asked,
                                                  const kernel::KnobMachine& machine,
                                                  std::vector<sdk::UnmetWish>& unmet);

/// Sets `attributes` on all threads of the container in `cgroup`, which is "/a/b" as in
/// ComputeInstance, and reads them back. New threads inherit them. Errors: the kernel's;
/// kUnavailable for threads that were missed.
Status GiveScheduling(const std::vector<Attribute>& attributes, const std::string& cgroup,
                      const kernel::KnobMachine& machine);

}  // namespace qrm::cci
