// Which knobs a machine has.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/knobs/config.h"
#include "plugins/knobs/knob.h"

namespace qrm::knobs {

/// Where a type's knobs are on one machine.
struct KnobMachine {
  std::string files_root;  ///< of the hierarchy with the type's controller; empty: there is none
  bool is_v1 = true;
  std::string threads_root;  ///< of the hierarchy where containers can be frozen

  /// Whether some cgroup has the file, of the root or right below it: a few are not in the root,
  /// and in v2 most are only where the controller is enabled.
  [[nodiscard]] bool HasFile(const std::string& name) const;
};

/// Of `type`, where cgroups are mounted below `cgroup_root`.
KnobMachine FindKnobs(const KnobType& type, const std::string& cgroup_root);

/// OK when a container of `machine` can be given all of `values`. Errors: kFailedPrecondition
/// naming the first that it cannot, and the cure.
Status CheckValues(const KnobType& type, const KnobValues& values, const KnobMachine& machine);

/// Whether the place of `knob` is one of this machine, if the kernel has it.
bool IsOf(const Knob& knob, const KnobMachine& machine);

}  // namespace qrm::knobs
