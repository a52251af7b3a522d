// A type of classes that is a table of knobs.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "plugins/knobs/knob.h"
#include "plugins/knobs/knob_machine.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::knobs {

/// Classes of `config_file` by the table of `type`, which outlives the provider, on `machine`. What
/// the runtime can set at creation it does (cgroup v2's files, oom_score_adj); Apply sets the rest
/// before the first instruction, and all of it on running containers. A knob that some class sets
/// is this type's on everybody who has a class of it, or asked for none: who has a class without it
/// has it neutral. Knobs that no class sets are left alone.
/// Errors: kInvalidArgument for a file that cannot be read or has an error.
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeKnobProvider(const KnobType& type,
                                                               const std::string& config_file,
                                                               KnobMachine machine);

/// The same for this machine, whose cgroups are below `cgroup_root`.
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeSystemKnobs(const KnobType& type,
                                                              const std::string& config_file,
                                                              const std::string& cgroup_root);

}  // namespace qrm::knobs
