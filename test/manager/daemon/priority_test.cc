#include "manager/daemon/realtime.h"

#include <thread>

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(RealtimeTest, ThreadRunsInRealTimeAndThoseThatItStartsDoNot) {
  std::thread([] {
    const Status status = RunInRealTime(3);
    if (!status.ok()) {
      GTEST_SKIP() << MessageOf(status);
    }
    sched_param param = {};
    EXPECT_EQ(::sched_getparam(0, &param), 0);
    EXPECT_EQ(param.sched_priority, 3);
    EXPECT_EQ(::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, SCHED_RR);
    std::thread([] { EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER); }).join();
  }).join();
}

TEST(RealtimeTest, WhoMayNotIsToldWhatToDoAndStaysAsHeWas) {
  std::thread([] {
    constexpr unsigned kNobody = 65534;
    // The system call takes the rights of this thread alone; the library's function those of all.
    if (::syscall(SYS_setresuid, kNobody, kNobody, kNobody) != 0) {
      GTEST_SKIP() << "only root can become somebody else";
    }
    const Status status = RunInRealTime(3);
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
    EXPECT_THAT(MessageOf(status),
                AllOf(HasSubstr("real-time priority 3"), HasSubstr("CAP_SYS_NICE")));
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
  }).join();
}

}  // namespace
}  // namespace qrm::manager
