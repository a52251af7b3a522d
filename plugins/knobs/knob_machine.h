// The knobs of a machine.
#pragma once

#include <string>
#include <vector>

#include "api/base/status.h"
#include "plugins/knobs/config.h"
#include "plugins/knobs/knob.h"

namespace qrm::knobs {

/// Where a type's knobs are on one machine.
struct KnobMachine {
  std::string files_root;  ///< the hierarchy with the type's controller; empty: none
  bool is_v1 = true;
  std::string threads_root;  ///< the hierarchy where containers can be frozen

  /// Whether the root cgroup or one of its children has the file. Some files are not in the root,
  /// and in v2 most exist only where the controller is enabled.
  [[nodiscard]] bool HasFile(const std::string& name) const;
};

/// The knobs of `type`, with cgroups mounted below `cgroup_root`.
KnobMachine FindKnobs(const KnobType& type, const std::string& cgroup_root);

/// OK if containers on `machine` can have all of `values`. Errors: kFailedPrecondition with the
/// first impossible value, and what to do.
Status CheckValues(const KnobType& type, const KnobValues& values, const KnobMachine& machine);

/// Whether `knob` fits this machine's cgroup version, if the kernel has it.
bool IsOf(const Knob& knob, const KnobMachine& machine);

}  // namespace qrm::knobs
