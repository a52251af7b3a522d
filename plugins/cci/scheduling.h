// Sets how the kernel schedules a container's threads, from attributes of the whole container.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/cci/attribute.h"
#include "plugins/kernel/knob.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::cci {

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
