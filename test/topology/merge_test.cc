// The reasons of a merge, and the numeric rule by example.
#include "topology/merge.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::merge_test {
namespace {

using testing::ElementsAre;

Machine Nodes(int count) {
  MachineParts parts;
  for (int id = 0; id < count; ++id) {
    parts.nodes.push_back({.id = id});
  }
  return Machine(std::move(parts));
}

HintList Preferred(const std::vector<NumaMask>& masks) {
  std::vector<TopologyHint> hints;
  hints.reserve(masks.size());
  for (const NumaMask& mask : masks) {
    hints.push_back({.nodes = mask, .preferred = true});
  }
  return HintList(std::move(hints));
}

TEST(MergeReasonsTest, NameTheResourceWhoseHintsExcludedWhat) {
  const MergeResult result =
      MergeHints(Nodes(4), {{"cpu", Preferred({{0}, {1}})}, {"memory", Preferred({{1}, {2}})}},
                 {.policy = TopologyPolicy::kRestricted});
  EXPECT_TRUE(result.admit);
  EXPECT_EQ(result.hints.at("cpu"), (TopologyHint{.nodes = {1}, .preferred = true}));
  EXPECT_THAT(result.reasons,
              ElementsAre("memory: prefers 1 or 2, which excludes 0 that cpu prefers"));
}

TEST(MergeReasonsTest, ReportWhyNothingIsLeft) {
  const MergeResult result = MergeHints(Nodes(4),
                                        {{"cpu", Preferred({{0}, {1}})},
                                         {"memory", Preferred({{2}})},
                                         {"nic", HintList::Impossible()}},
                                        {.policy = TopologyPolicy::kSingleNumaNode});
  EXPECT_FALSE(result.admit);
  EXPECT_THAT(result.reasons,
              ElementsAre("memory: prefers 2, which excludes 0 or 1, all that cpu prefers",
                          "nic: no NUMA node can serve it"));
}

TEST(MergeReasonsTest, StayShortForLongHintLists) {
  std::vector<NumaMask> low;
  std::vector<NumaMask> high;
  for (int node = 0; node < 30; ++node) {
    low.push_back({node});
    high.push_back({node + 30});
  }
  const MergeResult result = MergeHints(Nodes(64), {{"a", Preferred(low)}, {"b", Preferred(high)}},
                                        {.policy = TopologyPolicy::kRestricted});
  EXPECT_THAT(result.reasons,
              ElementsAre("b: prefers 30 or 31 or 32 or 33 or 26 more, which excludes 0 or 1 or 2 "
                          "or 3 or 26 more, all that a prefers"));
}

TEST(NumericMergeTest, AlignsSomeResourcesAndNestsTheOthers) {
  const HintsByResource hints = {{"cpu", Preferred({{0}, {2}})},
                                 {"memory", Preferred({{2}, {3}})},
                                 {"nic", Preferred({{0, 1}, {2, 3}})}};
  const MergeResult result = MergeHints(Nodes(4), hints, {.policy = TopologyPolicy::kNumeric});
  ASSERT_TRUE(result.admit);
  EXPECT_EQ(ToString(result.hints.at("cpu").nodes), "2");
  EXPECT_EQ(ToString(result.hints.at("memory").nodes), "2");
  EXPECT_EQ(ToString(result.hints.at("nic").nodes), "2-3");
}

TEST(NumericMergeTest, CountsThePreferenceOfEveryAlignedResource) {
  // The first of three aligned resources prefers the mask, the last two do not.
  const HintList no({TopologyHint{.nodes = {1}, .preferred = false}});
  const MergeResult result =
      MergeHints(Nodes(2), {{"a", Preferred({{1}})}, {"b", no}, {"c", no}},
                 {.policy = TopologyPolicy::kNumeric, .align_resources = {"a", "b", "c"}});
  EXPECT_TRUE(result.admit);
}

TEST(NumericMergeTest, RejectsMasksThatDoNotNestAndSaysWhich) {
  const MergeResult result = MergeHints(
      Nodes(4),
      {{"cpu", Preferred({{0}})}, {"memory", Preferred({{0}})}, {"nic", Preferred({{2, 3}})}},
      {.policy = TopologyPolicy::kNumeric});
  EXPECT_FALSE(result.admit);
  EXPECT_THAT(result.reasons, ElementsAre("nic: offers 2-3, none of which nests with 0, that the "
                                          "aligned resources share"));
}

TEST(TopologyPolicyTest, IsReadByItsNameOnly) {
  for (const char* name : {"none", "best-effort", "restricted", "single-numa-node", "numeric"}) {
    EXPECT_EQ(ToString(ParseTopologyPolicy(name).value()), name);
  }
  EXPECT_EQ(ParseTopologyPolicy("Restricted").status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(ParseTopologyPolicy("\x01").status()), testing::HasSubstr("\\x01"));
  EXPECT_THAT(MessageOf(ParseTopologyScope("\x01").status()), testing::HasSubstr("\\x01"));
}

}  // namespace
}  // namespace qrm::merge_test
