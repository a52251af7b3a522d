#include "plugins/sdk/calls/held_allocations.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/proto/resourceplugin/v1alpha1/api.pb.h"
#include "api/wire.h"

namespace qrm::calls::held_allocations_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

std::string AnswerOf(const std::string& cpus, const std::string& pod = "uid") {
  const ResourceAllocation allocation = {.oci_property = "CpusetCpus", .value = cpus};
  const AllocationByContainer held = {{{pod, "main"}, {{"cpu", allocation}}}};
  return wire::ToWire(held).SerializeAsString();
}

std::vector<std::string> ValuesIn(const HeldList& list) {
  std::vector<std::string> values;
  for (const HeldAllocation& one : list) {
    values.push_back(one.key.pod_uid + ": " + one.allocation->value);
  }
  return values;
}

TEST(HeldAllocationsTest, SameBytesAreTheSameAnswerHoweverTheyAreCut) {
  HeldAllocationsReader reader;
  const std::string bytes = AnswerOf("0-3");
  const std::string_view view = bytes;
  const auto whole = reader.Read({view});
  const auto cut = reader.Read({view.substr(0, 1), view.substr(1, 5), {}, view.substr(6)});
  ASSERT_TRUE(whole.ok() && cut.ok());
  EXPECT_EQ(whole->identity(), cut->identity());
  EXPECT_EQ(*whole->Read(), *cut->Read());
}

// As a program in Go writes its maps: in another order each time.
std::string Shuffled(std::mt19937& random) {
  std::vector<std::string> pods;
  for (const char* uid : {"a", "b", "c"}) {
    AllocationByContainer held;
    for (const char* container : {"main", "sidecar"}) {
      held[{uid, container}]["cpu"] = ResourceAllocation{.oci_property = "CpusetCpus",
                                                         .value = "0-3",
                                                         .envs = {{"A", "1"}, {"B", "2"}},
                                                         .amount_by_node = {{0, 2}, {1, 2}}};
    }
    pods.push_back(wire::ToWire(held).SerializeAsString());  // its maps have no order either
  }
  std::shuffle(pods.begin(), pods.end(), random);
  return pods[0] + pods[1] + pods[2];
}

TEST(HeldAllocationsTest, AnswerInAnotherOrderIsTheSame) {
  std::mt19937 random;  // NOLINT(cert-msc51-cpp): the same orders each time
  HeldAllocationsReader reader;
  const auto first = reader.Read({Shuffled(random)});
  ASSERT_TRUE(first.ok());
  for (int i = 0; i < 20; ++i) {
    const auto again = reader.Read({Shuffled(random)});
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->identity(), first->identity());
    EXPECT_EQ(*again->Read(), *first->Read());
  }
}

TEST(HeldAllocationsTest, OtherBytesAreAnotherAnswer) {
  HeldAllocationsReader reader;
  const auto first = reader.Read({AnswerOf("0-3")});
  const auto second = reader.Read({AnswerOf("0-2")});
  const auto longer = reader.Read({AnswerOf("0-2"), AnswerOf("0-2")});
  const auto empty = reader.Read({});
  ASSERT_TRUE(first.ok() && second.ok() && longer.ok() && empty.ok());
  EXPECT_NE(first->identity(), second->identity());
  EXPECT_NE(second->identity(), longer->identity());
  EXPECT_NE(second->identity(), empty->identity());
  EXPECT_EQ(second->Read()->at(0).allocation->value, "0-2");
  EXPECT_TRUE(empty->Read()->empty());
}

TEST(HeldAllocationsTest, KnowsOfWhichPodsItSaysSomethingElseThanTheAnswerBefore) {
  HeldAllocationsReader reader;
  const auto first = reader.Read({AnswerOf("0", "a"), AnswerOf("1", "b"), AnswerOf("2", "c")});
  const auto next = reader.Read({AnswerOf("2", "c"), AnswerOf("5", "b"), AnswerOf("3", "d")});
  const auto again = reader.Read({AnswerOf("3", "d"), AnswerOf("2", "c"), AnswerOf("5", "b")});
  ASSERT_TRUE(first.ok() && next.ok() && again.ok());
  EXPECT_THAT(next->PodsUnlike(first->identity()), Optional(ElementsAre("a", "b", "d")));
  EXPECT_THAT(again->PodsUnlike(next->identity()), Optional(IsEmpty()));
  const auto last = reader.Read({});
  ASSERT_TRUE(last.ok());
  EXPECT_THAT(last->PodsUnlike(next->identity()), Optional(ElementsAre("b", "c", "d")));
}

TEST(HeldAllocationsTest, DoesNotKnowHowItDiffersFromAnyOtherAnswer) {
  HeldAllocationsReader reader;
  const auto first = reader.Read({AnswerOf("0")});
  const auto second = reader.Read({AnswerOf("1")});
  const auto third = reader.Read({AnswerOf("2")});
  ASSERT_TRUE(first.ok() && second.ok() && third.ok());
  EXPECT_EQ(third->PodsUnlike(first->identity()), std::nullopt);
  EXPECT_EQ(first->PodsUnlike({}), std::nullopt);
  EXPECT_EQ(HeldAllocations().PodsUnlike(first->identity()), std::nullopt);
}

TEST(HeldAllocationsTest, FindsHowListsDiffer) {
  const auto held = [](const std::map<std::string, std::string>& cpus_by_pod) {
    AllocationByContainer allocations;
    for (const auto& [pod, cpus] : cpus_by_pod) {
      allocations[{pod, "main"}]["cpu"] = ResourceAllocation{.value = cpus};
      allocations[{pod, "side"}]["cpu"] = ResourceAllocation{.value = "7"};
    }
    return HeldAllocations(allocations);
  };
  const HeldAllocations first = held({{"a", "0"}, {"b", "1"}, {"c", "2"}});
  const HeldAllocations next = held({{"b", "5"}, {"c", "2"}, {"d", "3"}});
  EXPECT_THAT(next.PodsUnlike(first.identity()), Optional(ElementsAre("a", "b", "d")));
  EXPECT_THAT(first.PodsUnlike(next.identity()), Optional(ElementsAre("a", "b", "d")));
  EXPECT_THAT(held({{"a", "0"}}).PodsUnlike(held({{"a", "0"}}).identity()), Optional(IsEmpty()));
  EXPECT_THAT(HeldAllocations().PodsUnlike(first.identity()), Optional(ElementsAre("a", "b", "c")));
}

TEST(HeldAllocationsTest, ReadsOnlyThePodsThatAreAskedFor) {
  HeldAllocationsReader reader;
  const std::vector<std::string> pods = {AnswerOf("0", "a"), AnswerOf("1", "b"),
                                         AnswerOf("2", "c")};
  const auto parsed = reader.Read({pods[0], pods[1], pods[2]});
  const auto same = reader.Read({pods[2], pods[1], pods[0]});
  const auto changed = reader.Read({pods[2], AnswerOf("5", "b"), pods[0]});
  ASSERT_TRUE(parsed.ok() && same.ok() && changed.ok());
  const PodSet wanted = {"b", "c", "nobody"};
  EXPECT_THAT(ValuesIn(*parsed->ReadOf(wanted)), ElementsAre("b: 1", "c: 2"));
  EXPECT_THAT(ValuesIn(*same->ReadOf(wanted)), ElementsAre("b: 1", "c: 2"));
  EXPECT_THAT(ValuesIn(*changed->ReadOf(wanted)), ElementsAre("b: 5", "c: 2"));
  EXPECT_THAT(ValuesIn(*changed->Read()), ElementsAre("a: 0", "b: 5", "c: 2"));
  EXPECT_THAT(ValuesIn(*changed->ReadOf({})), IsEmpty());
}

// A plugin that says two things about a pod: the last one counts, as protobuf has it.
TEST(HeldAllocationsTest, ReadsAPodThatIsNamedTwiceAsTheWholeAnswerDoes) {
  HeldAllocationsReader reader;
  ASSERT_TRUE(reader.Read({AnswerOf("0", "a"), AnswerOf("1", "b")}).ok());
  const auto twice = reader.Read({AnswerOf("0", "a"), AnswerOf("1", "b"), AnswerOf("7", "b")});
  ASSERT_TRUE(twice.ok());
  EXPECT_THAT(ValuesIn(*twice->Read()), ElementsAre("a: 0", "b: 7"));
  EXPECT_THAT(ValuesIn(*twice->ReadOf({"b"})), ElementsAre("b: 7"));
  const auto once = reader.Read({AnswerOf("0", "a"), AnswerOf("1", "b")});
  ASSERT_TRUE(once.ok());
  EXPECT_THAT(once->PodsUnlike(twice->identity()), Optional(ElementsAre("b")));
}

TEST(HeldAllocationsTest, RefusesAnAnswerOfWhichOnlyANewPodIsUnreadable) {
  HeldAllocationsReader reader;
  const auto first = reader.Read({AnswerOf("0", "a"), AnswerOf("1", "b")});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(reader.Read({AnswerOf("0", "a"), AnswerOf("x-y", "b")}).status().code(),
            StatusCode::kInvalidArgument);
  const auto next = reader.Read({AnswerOf("0", "a")});
  ASSERT_TRUE(next.ok());
  EXPECT_THAT(next->PodsUnlike(first->identity()), Optional(ElementsAre("b")));
}

TEST(HeldAllocationsTest, UnreadableAnswerIsRefusedAndNotRemembered) {
  HeldAllocationsReader reader;
  EXPECT_EQ(reader.Read({"no message"}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(reader.Read({"no message"}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(reader.Read({AnswerOf("x-y")}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace qrm::calls::held_allocations_test
