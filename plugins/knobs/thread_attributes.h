// Attributes of threads: reading and setting them one by one, and for a whole container.
#pragma once

#include <map>
#include <string>

#include <sys/types.h>

#include "api/base/status.h"
#include "plugins/knobs/knob.h"

namespace qrm::knobs {

/// What threads are to have; values as ReadAttribute shows them.
using ThreadValues = std::map<ThreadAttribute, std::string>;

/// "5", "batch", "fifo 10", "-500". Errors: kNotFound when the thread is gone; kUnavailable.
/// Source: getpriority(2), sched_getscheduler(2), proc_pid_oom_score_adj(5).
StatusOr<std::string> ReadAttribute(ThreadAttribute attribute, pid_t thread);

/// Errors: kNotFound when the thread is gone; kFailedPrecondition when it is not allowed.
Status WriteAttribute(ThreadAttribute attribute, pid_t thread, const std::string& value);

/// OK when this process may set `attribute` of others to `value`. Errors: kFailedPrecondition with
/// what is missing.
Status CheckMaySet(ThreadAttribute attribute, const std::string& value);

/// "nice", "policy", "oom_score_adj".
const char* NameOf(ThreadAttribute attribute);

/// Has all threads of the cgroup `directory` have `wanted`. Errors: those of WriteAttribute and of
/// RepairAllThreads.
Status SetAllThreads(const std::string& directory, const ThreadValues& wanted);

/// Empty when all of them have it, else what some have instead. Errors: kNotFound when the cgroup
/// is gone.
StatusOr<std::string> FindOtherValues(const std::string& directory, const ThreadValues& wanted);

}  // namespace qrm::knobs
