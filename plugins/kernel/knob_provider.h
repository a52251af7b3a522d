// A class type that is a table of knobs.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "plugins/kernel/knob.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::kernel {

/// The classes of `config_file` by the table of `type`, which must outlive the provider, on
/// `machine`. The runtime sets what it can at creation (cgroup v2's files, oom_score_adj). Apply
/// sets the rest before the first instruction, and everything on running containers. If any class
/// sets a knob, containers of other classes, or without a class, get its neutral value. Knobs that
/// no class sets are not changed. Errors: kInvalidArgument for a file that cannot be read or has an
/// error.
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeKnobProvider(const KnobType& type,
                                                               const std::string& config_file,
                                                               KnobMachine machine);

}  // namespace qrm::kernel
