#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/sdk/held_list.h"

namespace qrm::calls::held_allocations_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

HeldAllocations Held(const std::map<std::string, std::string>& cpus_by_pod) {
  AllocationByContainer allocations;
  for (const auto& [pod, cpus] : cpus_by_pod) {
    allocations[{pod, "main"}]["cpu"] = ResourceAllocation{.value = cpus};
    allocations[{pod, "side"}]["cpu"] = ResourceAllocation{.value = "7"};
  }
  return ToHeld(allocations);
}

std::vector<std::string> ValuesIn(const HeldList& list) {
  std::vector<std::string> values;
  for (const HeldAllocation& one : list) {
    values.push_back(one.key.pod_uid + ": " + one.allocation->value);
  }
  return values;
}

TEST(HeldAllocationsTest, FindsThePodsAboutWhichTwoAnswersDiffer) {
  const HeldAllocations first = Held({{"a", "0"}, {"b", "1"}, {"c", "2"}});
  const HeldAllocations next = Held({{"b", "5"}, {"c", "2"}, {"d", "3"}});
  EXPECT_THAT(PodsUnlike(*first, *next), ElementsAre("a", "b", "d"));
  EXPECT_THAT(PodsUnlike(*next, *first), ElementsAre("a", "b", "d"));
  EXPECT_THAT(PodsUnlike(*Held({{"a", "0"}}), *Held({{"a", "0"}})), IsEmpty());
  EXPECT_THAT(PodsUnlike(*first, *Held({})), ElementsAre("a", "b", "c"));
}

TEST(HeldAllocationsTest, SelectsThePodsThatAreAskedFor) {
  const HeldAllocations held = Held({{"a", "0"}, {"b", "1"}, {"c", "2"}});
  EXPECT_THAT(ValuesIn(*HeldOf(*held, {"b", "c", "nobody"})),
              ElementsAre("b: 1", "b: 7", "c: 2", "c: 7"));
  EXPECT_THAT(ValuesIn(*HeldOf(*held, {})), IsEmpty());
}

}  // namespace
}  // namespace qrm::calls::held_allocations_test
