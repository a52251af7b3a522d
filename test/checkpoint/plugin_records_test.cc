// The records of a plugin, and what remains without them.
#include "checkpoint/plugin_records.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/sample_node.h"

namespace qrm::checkpoint::plugin_records_test {
namespace {

using test::NodeMemory;
using test::OwnCpus;
using test::SamplePod;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr char kExtra[] = "example.com/extra";

// "db" has CPUs, accompanying resources, and memory; "web" only CPUs; "gone" has ended.
NodeState Sample() {
  Change change = test::Admit(
      SamplePod("db"), "main",
      {{"cpu", OwnCpus("1-2")}, {kExtra, {}}, {"memory", NodeMemory({{0, test::kGiB}})}});
  change.put_containers[0].record.origins.Edit()[kExtra] = {.plugin = "cpu", .endpoint = ""};
  change.add_pending_removals = {{"uid-gone", "cpu"}, {"uid-gone", "memory"}};
  return NodeState().With(change).With(
      test::Admit(SamplePod("web"), "main", {{"cpu", OwnCpus("3")}}));
}

TEST(PluginRecordsTest, AreThePluginsAllocationsAndPendingRemovals) {
  const PluginRecords records = RecordsOf(Sample(), "cpu");
  std::vector<std::string> given;
  given.reserve(records.allocations.size());
  for (const PluginRecords::Given& allocation : records.allocations) {
    given.push_back(allocation.pod_name + " " + allocation.key.container + " " +
                    allocation.resource);
  }
  EXPECT_THAT(given, ElementsAre("db main cpu", std::string("db main ") + kExtra, "web main cpu"));
  EXPECT_THAT(records.pending_removals, ElementsAre("uid-gone"));
  EXPECT_TRUE(RecordsOf(Sample(), kExtra).Empty());
}

TEST(PluginRecordsTest, DropLeavesTheRecordsOfOtherPlugins) {
  const NodeState before = Sample();
  const NodeState after = before.With(ChangeWithout(before, RecordsOf(before, "cpu")));
  const ContainerRecord* db = after.Find({"uid-db", "main"});
  ASSERT_NE(db, nullptr);
  EXPECT_EQ(db->allocations.size(), 1U);
  EXPECT_EQ(db->allocations.count("memory"), 1U);
  EXPECT_THAT(db->origins, IsEmpty());
  EXPECT_EQ(after.FindPod("uid-web"), nullptr) << "it had nothing else";
  EXPECT_THAT(after.pending_removals().at("uid-gone"), ElementsAre("memory"));
}

}  // namespace
}  // namespace qrm::checkpoint::plugin_records_test
