#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "manager/reconcile/drift.h"
#include "manager/reconcile/plan.h"

namespace qrm::manager::moved_memory_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr uint64_t kMiB = 1 << 20;
const ContainerKey kDb{"uid-db", "main"};

class MovedMemoryTest : public testing::Test {
 protected:
  MovedMemoryTest() {
    live_.Reset({{"uid-db", {"sandbox"}}}, {{kDb, {"id", "sandbox", true, "/kubepods/db"}}});
    moved_.Note({.key = kDb, .container_id = "id", .properties = {{"CpusetMems", "1"}}});
  }

  LiveContainers live_;
  StatusOr<std::map<int, uint64_t>> bytes_ = std::map<int, uint64_t>{{0, 16 * kMiB}, {1, 0}};
  int readings_ = 0;
  MovedMemory moved_{[this](const std::string& path) {
                       EXPECT_EQ(path, "/kubepods/db");
                       ++readings_;
                       return bytes_;
                     },
                     live_};
};

TEST_F(MovedMemoryTest, ReportsMemoryOnOtherNodesUntilItHasMoved) {
  const auto still_there = ElementsAre(
      "16777216 bytes of container main of pod uid-db are still on NUMA nodes 0 instead of 1: the "
      "kernel did not move them (cgroup v1 moves memory only if cpuset.memory_migrate is 1); "
      "restart the container, or wait until it frees them");
  EXPECT_THAT(moved_.Look(), still_there);
  EXPECT_THAT(moved_.Look(), still_there);
  bytes_ = std::map<int, uint64_t>{{0, kMiB}, {1, 15 * kMiB}};
  EXPECT_THAT(moved_.Look(), IsEmpty()) << "the kernel counts no more exactly than that";
  bytes_ = std::map<int, uint64_t>{{0, 16 * kMiB}};
  EXPECT_THAT(moved_.Look(), IsEmpty()) << "it has followed once";
  EXPECT_EQ(readings_, 3) << "no container is looked at any longer";
}

TEST_F(MovedMemoryTest, StopsReportingMemoryThatTheKernelDoesNotMove) {
  for (int i = 0; i < MovedMemory::kMostLooks; ++i) {
    EXPECT_EQ(moved_.Look().size(), 1U);
  }
  EXPECT_THAT(moved_.Look(), IsEmpty());
  EXPECT_EQ(readings_, MovedMemory::kMostLooks);
}

TEST_F(MovedMemoryTest, GoesByTheLatestNodes) {
  moved_.Note({.key = kDb, .container_id = "id", .properties = {{"CpusetMems", "0"}}});
  EXPECT_THAT(moved_.Look(), IsEmpty());
}

TEST_F(MovedMemoryTest, LooksAtNoContainerForAnUpdateOfOtherValues) {
  EXPECT_EQ(moved_.Look().size(), 1U);
  moved_.Note({.key = kDb, .container_id = "id", .properties = {{"CpusetCpus", "0"}}});
  EXPECT_EQ(moved_.Look().size(), 1U) << "its nodes are as before";
  bytes_ = std::map<int, uint64_t>{};
  EXPECT_THAT(moved_.Look(), IsEmpty());
  moved_.Note({.key = kDb, .container_id = "id", .properties = {{"CpusetCpus", "0"}}});
  moved_.Look();
  EXPECT_EQ(readings_, 3);
}

TEST_F(MovedMemoryTest, ForgetsContainersThatHaveGone) {
  live_.Reset({{"uid-db", {"sandbox"}}}, {{kDb, {"another", "sandbox", true, "/kubepods/db"}}});
  EXPECT_THAT(moved_.Look(), IsEmpty());
  EXPECT_EQ(readings_, 0);
}

TEST_F(MovedMemoryTest, ForgetsContainersWhoseMemoryCannotBeRead) {
  bytes_ = Errorf(StatusCode::kNotFound, "no such cgroup");
  EXPECT_THAT(moved_.Look(), IsEmpty());
  EXPECT_THAT(moved_.Look(), IsEmpty());
  EXPECT_EQ(readings_, 1);
}

}  // namespace
}  // namespace qrm::manager::moved_memory_test
