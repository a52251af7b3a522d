// The type cpu-quota: CPU bandwidth limits of containers and their pods, lifted or with burst.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "api/base/section.h"
#include "api/base/status.h"
#include "plugins/kernel/knob.h"
#include "plugins/sdk/class_provider.h"

namespace qrm::kernel {

inline constexpr char kQuotaType[] = "cpu-quota";

/// How a class changes kubelet's quota.
struct QuotaClass {
  bool is_lifted = false;  ///< no quota
  int burst_percent = 0;   ///< the part of the quota that may be saved and used later; 0 to 100

  bool operator==(const QuotaClass&) const = default;
};

/// Reads `classes: {NAME: {quota: none}, NAME: {burst: 50%}}`. Errors: kInvalidArgument with file,
/// line and key for anything else.
StatusOr<std::map<std::string, QuotaClass>> ParseQuotaClasses(const config::Section& file);

/// The classes of `config_file`. A container's class is set on its cgroup and on its pod's cgroup,
/// whose quota would otherwise limit it. This happens before the first instruction, and again after
/// the runtime or kubelet has overwritten it. The class cannot change while the container runs:
/// kubelet's original quota is no longer known. Errors: kInvalidArgument for a file that cannot be
/// read or has an error. Source: Linux Documentation/scheduler/sched-bwc.rst, cgroup-v2.rst,
/// cpu.max.
StatusOr<std::unique_ptr<sdk::ClassProvider>> MakeQuotaProvider(const std::string& config_file,
                                                                KnobMachine machine);

}  // namespace qrm::kernel
