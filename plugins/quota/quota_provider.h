// The type cpu-quota.
#pragma once

#include <memory>
#include <string>

#include "api/base/status.h"
#include "plugins/knobs/knob_machine.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::quota {

inline constexpr char kType[] = "cpu-quota";

/// Classes of `config_file`. A container's class is set on its cgroup and on that of its pod, whose
/// quota would bound it else, before its first instruction, and again where the runtime or kubelet
/// has written theirs. It does not change while the container runs: what kubelet gave is not known
/// any more then. Errors: kInvalidArgument for a file that cannot be read or has an error.
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeQuotaProvider(const std::string& config_file,
                                                                knobs::KnobMachine machine);

/// The same for this machine, whose cgroups are below `cgroup_root`.
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeSystemQuota(const std::string& config_file,
                                                              const std::string& cgroup_root);

}  // namespace qrm::quota
