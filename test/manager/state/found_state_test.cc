// What a start reads from an existing state.
#include "manager/state/found_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/sample_node.h"

namespace qrm::manager::found_state_test {
namespace {

using checkpoint::Change;
using checkpoint::NodeState;
using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(FoundStateTest, KnowsThePluginsWithAllocationsOrPendingRemovals) {
  Change change = test::Admit(test::SamplePod("web"), "main", {{"cpu", test::OwnCpus("1")}});
  change.add_pending_removals.emplace_back("uid-gone", "memory");
  EXPECT_THAT(ResourcesOf(NodeState().With(change)), ElementsAre("cpu", "memory"));
}

TEST(FoundStateTest, KnowsNoPluginOfWhatAccompaniesAnothersAllocation) {
  Change change = test::Admit(test::SamplePod("web"), "main",
                              {{"cpu", test::OwnCpus("1")}, {"example.com/extra", {}}});
  change.put_containers[0].record.origins.Edit()["example.com/extra"] = {.plugin = "cpu",
                                                                         .endpoint = ""};
  EXPECT_THAT(ResourcesOf(NodeState().With(change)), ElementsAre("cpu"));
}

TEST(MachineFitTest, SharedCpusThatAreGoneCostNoExclusiveCpus) {
  ResourceAllocation mixed = test::OwnCpus("1");
  mixed.may_share = "0-99";
  mixed.shares = "90-99";
  const NodeState state =
      NodeState().With(test::Admit(test::SamplePod("web"), "main", {{"cpu", mixed}}));
  const Machine machine = test::SampleMachine();
  EXPECT_TRUE(FitToMachine(state, machine).repairs.empty());
  mixed.value = "98";
  const NodeState lost =
      NodeState().With(test::Admit(test::SamplePod("web"), "main", {{"cpu", mixed}}));
  EXPECT_THAT(FitToMachine(lost, machine).repairs, SizeIs(1));
}

}  // namespace
}  // namespace qrm::manager::found_state_test
