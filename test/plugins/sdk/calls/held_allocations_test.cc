#include "plugins/sdk/calls/held_allocations.h"

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
  EXPECT_EQ(second->Read()->at({"uid", "main"}).at("cpu").value, "0-2");
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
