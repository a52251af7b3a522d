// Gives threads a high priority, and the process CPUs of its own.
#pragma once

#include <functional>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "manager/daemon/process/process_options.h"

namespace qrm::manager {

/// How a thread is scheduled.
struct Priority {
  int nice = 0;      ///< other than 0: with short slices too, so that it runs soon
  int realtime = 0;  ///< 1 to 99: in real time (SCHED_RR); 0: not
};

/// Runs the calling thread, but none that it starts, with `priority`: an admission passes from
/// thread to thread, and on a node whose CPUs are all busy each of them else waits for its turn.
/// A thread that computes in real time for 200 ms without a pause goes on without real time, and
/// counts in Demotions; its memory comes from a heap apart (UseHeapApart). Source: sched(7),
/// sched_setattr(2), RLIMIT_RTTIME in getrlimit(2). Errors: kPermissionDenied when the kernel does
/// not allow it, with what to do; nothing has changed then.
Status RunWith(const Priority& priority);

/// The same for the calling thread and for others, each given by a function that runs a job on it.
/// Errors: as above; no thread has changed then.
using PostToThread = std::function<void(std::function<void()>)>;
Status RunWith(const Priority& priority, const std::vector<PostToThread>& threads);

/// How many threads of this process have lost real time so far. Threads: any.
int Demotions();

/// Keeps the calling thread, and those that it starts from now on, on `cpus`. Errors:
/// kFailedPrecondition when none of them is there for this process; nothing has changed then.
Status StayOn(const CpuSet& cpus);

/// Whether the options can be had: real time only for a process that stays on `reserved` CPUs, so
/// that it takes none from others. Errors: kInvalidArgument with what to do.
Status CheckPriority(const ProcessOptions& options, const CpuSet& reserved);

}  // namespace qrm::manager
