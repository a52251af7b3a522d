// Sets the priority of threads, and keeps the process on the reserved CPUs.
#pragma once

#include <functional>
#include <vector>

#include "api/base/status.h"
#include "api/id_set.h"
#include "manager/daemon/process/process_options.h"

namespace qrm::manager {

/// How a thread is scheduled.
struct Priority {
  int nice = 0;      ///< other than 0: also with short slices, so that it runs soon
  int realtime = 0;  ///< 1 to 99: in real time (SCHED_RR); 0: not in real time
};

/// Runs the calling thread with `priority`, but not the threads that it starts. An admission passes
/// through several threads, and on a busy node each of them would wait for a CPU.
///
/// A thread that computes in real time for 200 ms without a pause continues without real time, and
/// counts in Demotions. A real-time thread has a separate heap (UseHeapApart).
///
/// Source: sched(7), sched_setattr(2), RLIMIT_RTTIME in getrlimit(2). Errors: kPermissionDenied,
/// with a remedy, when the kernel does not allow it; nothing has changed then.
Status RunWith(const Priority& priority);

/// The same for the calling thread and other threads. Each of `threads` posts a job to one thread.
/// Errors: as above; no thread has changed then.
using PostToThread = std::function<void(std::function<void()>)>;
Status RunWith(const Priority& priority, const std::vector<PostToThread>& threads);

/// How many threads of this process have lost real time. Threads: any.
int Demotions();

/// Keeps the calling thread, and the threads that it starts later, on `cpus`. Errors:
/// kFailedPrecondition when the process may use none of `cpus`; nothing has changed then.
Status StayOn(const CpuSet& cpus);

/// Checks that real time is enabled only with `reserved` CPUs, so that qrmd takes no time from
/// containers. Errors: kInvalidArgument with a remedy.
Status CheckPriority(const ProcessOptions& options, const CpuSet& reserved);

}  // namespace qrm::manager
