#include "plugins/sdk/calls/held_allocations.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/wire.h"

namespace qrm::calls {
namespace {

std::string AnswerOf(const std::string& cpus) {
  const ResourceAllocation allocation = {.oci_property = "CpusetCpus", .value = cpus};
  const AllocationByContainer held = {{{"uid", "main"}, {{"cpu", allocation}}}};
  return wire::ToWire(held).SerializeAsString();
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

TEST(HeldAllocationsTest, UnreadableAnswerIsRefusedAndNotRemembered) {
  HeldAllocationsReader reader;
  EXPECT_EQ(reader.Read({"no message"}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(reader.Read({"no message"}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(reader.Read({AnswerOf("x-y")}).status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace qrm::calls
