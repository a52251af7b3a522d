// Sets the kernel's scheduling of threads with sched_setattr(2), sched_setscheduler(2) and
// sched_setaffinity(2).
#include "manager/daemon/process/priority.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <memory>
#include <system_error>

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "api/base/errorf.h"
#include "api/base/heap.h"
#include "api/base/log.h"

namespace qrm::manager {
namespace {

/// A hundred times as long as an admission.
constexpr rlim_t kRealTimeLimitMicros = 200'000;

std::atomic<int> demotions{0};

/// Handles SIGXCPU, which the kernel sends to the thread that exceeds RLIMIT_RTTIME.
void DemoteThread(int /*signal*/) {
  const int error = errno;
  const sched_param none = {.sched_priority = 0};
  const int policy = ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
  if (policy == SCHED_RR &&
      ::sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none) == 0) {
    demotions.fetch_add(1, std::memory_order_relaxed);
  }
  errno = error;
}

void LimitRealTime() {
  struct sigaction action{};
  action.sa_handler = DemoteThread;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGXCPU, &action, nullptr);
  rlimit limit{};
  ::getrlimit(RLIMIT_RTTIME, &limit);
  limit.rlim_cur = kRealTimeLimitMicros;
  ::setrlimit(RLIMIT_RTTIME, &limit);
}

/// The shortest slice that the kernel grants. From Linux 6.12 on, a thread that wakes up preempts a
/// running thread with a longer slice (usually 2.8 ms) at once, not at the next tick. Older kernels
/// ignore it. Source: sched(7), kernel/sched/fair.c (PREEMPT_SHORT).
constexpr uint64_t kSliceNanoseconds = 100'000;

/// The kernel's struct sched_attr, whose header conflicts with glibc's sched.h.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 1;  // SCHED_FLAG_RESET_ON_FORK
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = kSliceNanoseconds;
  uint64_t deadline = 0;
  uint64_t period = 0;
};

Status RunNicely(int nice) {
  const SchedulingAttributes attributes = {.nice = nice};
  if (::syscall(SYS_sched_setattr, 0, &attributes, 0) == 0) {
    return OkStatus();
  }
  return Errorf(StatusCode::kPermissionDenied,
                "cannot run at nice {}: {}; run qrmd as root or with CAP_SYS_NICE, or set nice: 0",
                nice, std::generic_category().message(errno));
}

Status RunInRealTime(int priority) {
  LimitRealTime();
  const sched_param param = {.sched_priority = priority};
  if (::sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param) == 0) {
    if (!UseHeapApart()) {
      log::Warning(
          "a real-time thread has no separate heap, so it may wait for other threads; give qrmd "
          "more memory and restart it");
    }
    return OkStatus();
  }
  return Errorf(StatusCode::kPermissionDenied,
                "cannot run at real-time priority {}: {}; run qrmd as root or with CAP_SYS_NICE, "
                "or set realtime-priority: 0; on a kernel with CONFIG_RT_GROUP_SCHED, also set "
                "cpu.rt_runtime_us of qrmd's cgroup (cgroup v1)",
                priority, std::generic_category().message(errno));
}

}  // namespace

Status RunWith(const Priority& priority) {
  if (priority.nice != 0) {
    QRM_RETURN_IF_ERROR(RunNicely(priority.nice));
  }
  return priority.realtime > 0 ? RunInRealTime(priority.realtime) : OkStatus();
}

Status RunWith(const Priority& priority, const std::vector<PostToThread>& threads) {
  QRM_RETURN_IF_ERROR(RunWith(priority));
  for (const PostToThread& post : threads) {
    post([priority] {
      if (const Status runs = RunWith(priority); !runs.ok()) {
        log::Warning("a thread does not have its priority", {{"error", MessageOf(runs)}});
      }
    });
  }
  return OkStatus();
}

int Demotions() {
  return demotions.load(std::memory_order_relaxed);
}

Status StayOn(const CpuSet& cpus) {
  int last = 0;
  for (const int cpu : cpus) {
    last = cpu;
  }
  const auto count = static_cast<std::size_t>(last) + 1;
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
      CPU_ALLOC(count), [](cpu_set_t* allocated) { CPU_FREE(allocated); });
  CPU_ZERO_S(CPU_ALLOC_SIZE(count), set.get());
  for (const int cpu : cpus) {
    CPU_SET_S(static_cast<std::size_t>(cpu), CPU_ALLOC_SIZE(count), set.get());
  }
  if (::sched_setaffinity(0, CPU_ALLOC_SIZE(count), set.get()) == 0) {
    return OkStatus();
  }
  return Errorf(StatusCode::kFailedPrecondition,
                "cannot stay on the reserved CPUs {}: {}; add them to the cpuset of qrmd's cgroup",
                ToString(cpus), std::generic_category().message(errno));
}

Status CheckPriority(const ProcessOptions& options, const CpuSet& reserved) {
  return options.realtime_priority == 0 || !reserved.Empty()
             ? OkStatus()
             : Errorf(
                   StatusCode::kInvalidArgument,
                   "cannot run at real-time priority {}: no CPUs are reserved, so qrmd would take "
                   "time from containers; set reserved-cpus in plugins.cpu, or set "
                   "realtime-priority: 0",
                   options.realtime_priority);
}

}  // namespace qrm::manager
