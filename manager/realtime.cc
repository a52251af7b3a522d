// The POSIX calls for it.
#include "manager/realtime.h"

#include <system_error>

#include <pthread.h>
#include <sched.h>

namespace qrm::manager {

Status RunInRealTime(int priority) {
  const sched_param param = {.sched_priority = priority};
  const int error = ::pthread_setschedparam(::pthread_self(), SCHED_RR, &param);
  if (error == 0) {
    return OkStatus();
  }
  return Errorf(StatusCode::kPermissionDenied,
                "cannot run at real-time priority {}: {}; run qrmd as root or with CAP_SYS_NICE, "
                "and if it has that, give its cgroup a cpu.rt_runtime_us, or set "
                "realtime-priority: 0",
                priority, std::generic_category().message(error));
}

}  // namespace qrm::manager
