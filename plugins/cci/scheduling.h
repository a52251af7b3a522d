// How the kernel schedules a container's threads, as attributes of the whole container say.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/cci/attribute.h"
#include "plugins/knobs/knob_machine.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::cci {

/// Where the threads of containers are, with cgroups below `cgroup_root`.
knobs::KnobMachine FindScheduling(const std::string& cgroup_root);

/// Those of `asked` that threads of `machine` can have. Wishes that they cannot go to `unmet`.
/// Errors: kFailedPrecondition for another one that they cannot, kInvalidArgument for one that this
/// driver does not keep; with the cure.
StatusOr<std::vector<Attribute>> ChooseScheduling(const std::vector<Attribute>& asked,
                                                  const knobs::KnobMachine& machine,
                                                  std::vector<sdk::UnmetWish>& unmet);

/// Has all threads of the container in `cgroup`, which is "/a/b" as in ComputeInstance, have what
/// `attributes` say, as they are read back; a thread that they start inherits it, and it ends with
/// them. Errors: the kernel's refusal; kUnavailable for threads that were missed.
Status GiveScheduling(const std::vector<Attribute>& attributes, const std::string& cgroup,
                      const knobs::KnobMachine& machine);

}  // namespace qrm::cci
