// Reads and sets attributes of threads, one by one or for a whole container.
#pragma once

#include <map>
#include <string>

#include <sys/types.h>

#include "api/base/status.h"
#include "plugins/kernel/knob.h"

namespace qrm::kernel {

/// The wanted attributes, by the names of their knobs; values in the form of ReadAttribute.
using ThreadValues = std::map<std::string, std::string>;

/// "5", "batch", "fifo 10", "-500". Errors: kNotFound when the thread is gone; kUnavailable.
/// Source: getpriority(2), sched_getscheduler(2), proc_pid_oom_score_adj(5).
StatusOr<std::string> ReadAttribute(const std::string& attribute, pid_t thread);

/// Errors: kNotFound when the thread is gone; kFailedPrecondition without permission.
Status WriteAttribute(const std::string& attribute, pid_t thread, const std::string& value);

/// OK if this process may set `attribute` of other processes to `value`. Errors:
/// kFailedPrecondition with the missing capability.
Status CheckMaySet(const std::string& attribute, const std::string& value);

/// Sets `wanted` on all threads of the cgroup `directory`. Errors: those of WriteAttribute and
/// RepairAllThreads.
Status SetAllThreads(const std::string& directory, const ThreadValues& wanted);

/// Empty if all threads have `wanted`, else the differing values. Errors: kNotFound when the cgroup
/// is gone.
StatusOr<std::string> FindOtherValues(const std::string& directory, const ThreadValues& wanted);

}  // namespace qrm::kernel
