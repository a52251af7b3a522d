// Sets threads' scheduling policy with sched_setscheduler(2).
#include "manager/daemon/realtime.h"

#include <cerrno>
#include <system_error>

#include <sched.h>

#include "api/base/log.h"

namespace qrm::manager {

Status RunInRealTime(int priority) {
  const sched_param param = {.sched_priority = priority};
  if (::sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param) == 0) {
    return OkStatus();
  }
  const int error = errno;
  return Errorf(StatusCode::kPermissionDenied,
                "cannot run at real-time priority {}: {}; run qrmd as root or with CAP_SYS_NICE, "
                "and if it has that, the kernel has CONFIG_RT_GROUP_SCHED: give qrmd's cgroup a "
                "cpu.rt_runtime_us (cgroup v1), or set realtime-priority: 0",
                priority, std::generic_category().message(error));
}

Status RunInRealTime(int priority, const std::vector<PostToThread>& threads) {
  if (priority == 0) {
    return OkStatus();
  }
  QRM_RETURN_IF_ERROR(RunInRealTime(priority));
  for (const PostToThread& post : threads) {
    post([priority] {
      if (const Status runs = RunInRealTime(priority); !runs.ok()) {
        log::Warning("a thread is not in real time", {{"error", MessageOf(runs)}});
      }
    });
  }
  return OkStatus();
}

}  // namespace qrm::manager
