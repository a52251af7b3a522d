#include "manager/runtime/live_containers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> Pods(
    const std::vector<std::pair<ContainerKey, LiveContainer>>& containers) {
  std::vector<std::string> pods;
  for (const auto& [key, container] : containers) {
    pods.push_back(key.pod_uid);
  }
  return pods;
}

TEST(LiveContainersTest, GivesTheNextOnesInTurn) {
  LiveContainers live;
  EXPECT_THAT(live.After({}, 3), IsEmpty());
  for (const char* pod : {"a", "b", "c"}) {
    live.Add({pod, "main"}, {.id = pod, .pod_id = pod});
  }
  EXPECT_THAT(Pods(live.After({}, 2)), ElementsAre("a", "b"));
  EXPECT_THAT(Pods(live.After({"b", "main"}, 2)), ElementsAre("c", "a"));
  EXPECT_THAT(Pods(live.After({"b", "zzz"}, 9)), ElementsAre("c", "a", "b")) << "each once";
}

TEST(LiveContainersTest, KeepsPodsThatMayStillBeThere) {
  LiveContainers live;
  live.Add({"seen", "main"}, {.id = "id", .pod_id = "sandbox"});
  live.Reset({{"listed", {"s"}}}, {{{"listed", "main"}, {.id = "new", .pod_id = "s"}}},
             {"seen", "never-seen"});
  EXPECT_EQ(live.Find({"seen", "main"})->id, "id");
  EXPECT_TRUE(live.HasPod("never-seen"));
  EXPECT_FALSE(live.RemovePod("seen", "sandbox")) << "its sandbox was kept, too";
  live.Reset({}, {});
  EXPECT_FALSE(live.HasPod("never-seen"));
}

}  // namespace
}  // namespace qrm::manager
