// What a start learns from the state that it finds.
#include "manager/state/found_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/sample_node.h"

namespace qrm::manager {
namespace {

using checkpoint::Change;
using checkpoint::NodeState;
using ::testing::ElementsAre;

TEST(FoundStateTest, KnowsThePluginsThatGaveAllocationsOrHaveToHearOfRemovals) {
  Change change = test::Admit(test::SamplePod("web"), "main", {{"cpu", test::OwnCpus("1")}});
  change.add_pending_removals.emplace_back("uid-gone", "memory");
  EXPECT_THAT(ResourcesOf(NodeState().With(change)), ElementsAre("cpu", "memory"));
}

TEST(FoundStateTest, KnowsNoPluginOfWhatAccompaniesAnothersAllocation) {
  Change change = test::Admit(test::SamplePod("web"), "main",
                              {{"cpu", test::OwnCpus("1")}, {"example.com/extra", {}}});
  change.put_containers[0].record.origins["example.com/extra"] = {.plugin = "cpu", .endpoint = ""};
  EXPECT_THAT(ResourcesOf(NodeState().With(change)), ElementsAre("cpu"));
}

}  // namespace
}  // namespace qrm::manager
