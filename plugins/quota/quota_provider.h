// The type cpu-quota.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "plugins/knobs/knob_machine.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::quota {

inline constexpr char kType[] = "cpu-quota";

/// The classes of `config_file`. A container's class is set on its cgroup and on its pod's cgroup,
/// whose quota would otherwise limit it. This happens before the first instruction, and again after
/// the runtime or kubelet has overwritten it. The class cannot change while the container runs:
/// kubelet's original quota is no longer known. Errors: kInvalidArgument for a file that cannot be
/// read or has an error.
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeQuotaProvider(const std::string& config_file,
                                                                knobs::KnobMachine machine);

/// The same for this machine, whose cgroups are below `cgroup_root`.
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeSystemQuota(const std::string& config_file,
                                                              const std::string& cgroup_root);

}  // namespace qrm::quota
