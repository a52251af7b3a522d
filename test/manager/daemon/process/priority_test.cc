#include "manager/daemon/process/priority.h"

#include <chrono>
#include <thread>

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager::priority_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

int PolicyOfThread() {
  return ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

TEST(PriorityTest, ThreadRunsInRealTimeAndItsChildrenDoNot) {
  std::thread([] {
    const Status status = RunWith({.realtime = 3});
    if (!status.ok()) {
      GTEST_SKIP() << MessageOf(status);
    }
    sched_param param = {};
    EXPECT_EQ(::sched_getparam(0, &param), 0);
    EXPECT_EQ(param.sched_priority, 3);
    EXPECT_EQ(PolicyOfThread(), SCHED_RR);
    std::thread([] { EXPECT_EQ(PolicyOfThread(), SCHED_OTHER); }).join();
  }).join();
}

TEST(PriorityTest, ThreadIsNiceAndItsChildrenAreNot) {
  std::thread([] {
    const Status status = RunWith({.nice = -7});
    if (!status.ok()) {
      GTEST_SKIP() << MessageOf(status);
    }
    EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), -7);
    EXPECT_EQ(PolicyOfThread(), SCHED_OTHER);
    std::thread([] { EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), 0); }).join();
  }).join();
}

/// Units: nanoseconds; 0 where the kernel does not report it (before Linux 6.12).
uint64_t SliceOfThread() {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
  } attributes = {};
  EXPECT_EQ(::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0), 0);
  return attributes.runtime;
}

TEST(PriorityTest, NiceThreadHasShorterSlicesThanItsChildren) {
  if (SliceOfThread() == 0) {
    GTEST_SKIP() << "this kernel has no slices that a thread can choose";
  }
  std::thread([] {
    const Status status = RunWith({.nice = -7});
    if (!status.ok()) {
      GTEST_SKIP() << MessageOf(status);
    }
    const uint64_t own = SliceOfThread();
    std::thread([own] { EXPECT_LT(own, SliceOfThread()); }).join();
  }).join();
}

TEST(PriorityTest, ThreadThatComputesWithoutAPauseLosesRealTimeAndKeepsItsNiceness) {
  std::thread([] {
    const Status status = RunWith({.nice = -7, .realtime = 1});
    if (!status.ok()) {
      GTEST_SKIP() << MessageOf(status);
    }
    const int before = Demotions();
    constexpr std::chrono::seconds kAmple{10};
    const auto end = std::chrono::steady_clock::now() + kAmple;
    while (PolicyOfThread() == SCHED_RR && std::chrono::steady_clock::now() < end) {
    }
    EXPECT_EQ(PolicyOfThread(), SCHED_OTHER);
    EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), -7);
    EXPECT_EQ(Demotions(), before + 1);
  }).join();
}

TEST(PriorityTest, WithoutPermissionReportsTheRemedyAndChangesNothing) {
  std::thread([] {
    constexpr unsigned kNobody = 65534;
    // The system call changes this thread only; the library's function changes all threads.
    if (::syscall(SYS_setresuid, kNobody, kNobody, kNobody) != 0) {
      GTEST_SKIP() << "only root can change the user";
    }
    const int before = ::getpriority(PRIO_PROCESS, 0);
    const Status real_time = RunWith({.realtime = 3});
    EXPECT_EQ(real_time.code(), StatusCode::kPermissionDenied);
    EXPECT_THAT(MessageOf(real_time),
                AllOf(HasSubstr("real-time priority 3"), HasSubstr("CAP_SYS_NICE")));
    const Status nice = RunWith({.nice = -20});
    EXPECT_EQ(nice.code(), StatusCode::kPermissionDenied);
    EXPECT_THAT(MessageOf(nice), AllOf(HasSubstr("nice -20"), HasSubstr("or set nice: 0")));
    EXPECT_EQ(PolicyOfThread(), SCHED_OTHER);
    EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), before);
  }).join();
}

TEST(PriorityTest, ThreadAndItsChildrenStayOnTheCpus) {
  std::thread([] {
    const int cpu = ::sched_getcpu();
    ASSERT_TRUE(StayOn({cpu}).ok());
    std::thread([cpu] {
      cpu_set_t cpus;
      ASSERT_EQ(::sched_getaffinity(0, sizeof(cpus), &cpus), 0);
      EXPECT_EQ(CPU_COUNT(&cpus), 1);
      EXPECT_TRUE(CPU_ISSET(cpu, &cpus));
    }).join();
  }).join();
}

TEST(PriorityTest, CpusThatAreNotThereAreNamed) {
  const Status stays = StayOn({CpuSet::kMaxIds - 1});
  EXPECT_EQ(stays.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(stays), HasSubstr("the reserved CPUs 65535"));
}

TEST(PriorityTest, RealTimeNeedsReservedCpus) {
  EXPECT_TRUE(CheckPriority({.realtime_priority = 0}, {}).ok());
  EXPECT_TRUE(CheckPriority({.realtime_priority = 1}, {0}).ok());
  const Status refused = CheckPriority({.realtime_priority = 1}, {});
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(refused), HasSubstr("set reserved-cpus in plugins.cpu"));
}

}  // namespace
}  // namespace qrm::manager::priority_test
