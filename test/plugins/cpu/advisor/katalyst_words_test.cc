// The requests to Katalyst's advisor, and what its answers mean.
#include "plugins/cpu/advisor/katalyst_words.h"

#include <cstdint>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/proto/cpuadvisor/cpu.pb.h"
#include "test/support/is_ok.h"

namespace qrm::cpu::katalyst_words_test {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

/// Pools share and reclaim on two NUMA nodes of four CPUs.
NodeSight TwoPools() {
  NodeSight node;
  node.online = {{0, CpuSet{0, 1, 2, 3}}, {1, CpuSet{4, 5, 6, 7}}};
  node.pools = {{"share", CpuSet{1, 2, 4}}, {"reclaim", CpuSet{5}}};
  node.advised.asks = {{"share", {}}, {"reclaim", {}}};
  node.reserved = CpuSet{0};
  return node;
}

ContainerRequest Asked(const std::string& pod, double cpus) {
  ContainerRequest request;
  request.key = {.pod_uid = pod + "-uid", .container = "main"};
  request.pod_namespace = "shop";
  request.pod_name = pod;
  request.requests.Edit()["cpu"] = cpus;
  request.labels.Edit()["app"] = pod;
  return request;
}

/// A pool, or a pod's UID, and a container, or none.
using Entry = std::pair<std::string, std::string>;

/// Adds a block of `cpus` CPUs to what `entry` gets.
void AddBlock(cpuadvisor::GetAdviceResponse& answer, const Entry& entry, int64_t numa,
              uint64_t cpus, const std::string& id) {
  cpuadvisor::CalculationInfo& info =
      (*(*answer.mutable_entries())[entry.first].mutable_entries())[entry.second];
  cpuadvisor::Block& block = *(*info.mutable_calculation_results_by_numas())[numa].add_blocks();
  block.set_result(cpus);
  block.set_block_id(id);
}

TEST(KatalystQuestionTest, ReportsPoolsAndTheReservedCpusByNumaNode) {
  const cpuadvisor::GetAdviceRequest question = QuestionOf(TwoPools());
  ASSERT_EQ(question.entries_size(), 3);
  const cpuadvisor::AllocationInfo& share =
      question.entries().at("share").entries().at("").allocation_info();
  EXPECT_EQ(share.owner_pool_name(), "share");
  EXPECT_THAT(share.topology_aware_assignments(),
              UnorderedElementsAre(Pair(0u, "1-2"), Pair(1u, "4")));
  EXPECT_THAT(question.entries()
                  .at("reserve")
                  .entries()
                  .at("")
                  .allocation_info()
                  .original_topology_aware_assignments(),
              ElementsAre(Pair(0u, "0")));
}

TEST(KatalystQuestionTest, ReportsTheNameAndRequestOfAContainer) {
  NodeSight node = TwoPools();
  const ContainerRequest asked = Asked("web", 1.5);
  node.containers.push_back({asked.key, "share", 1500, 1500});
  node.requests.emplace(asked.key, asked);
  const cpuadvisor::GetAdviceRequest question = QuestionOf(node);
  const cpuadvisor::ContainerAllocationInfo& web =
      question.entries().at("web-uid").entries().at("main");
  EXPECT_EQ(web.metadata().pod_namespace(), "shop");
  EXPECT_EQ(web.metadata().container_type(), 1);
  EXPECT_EQ(web.metadata().qos_level(), "shared_cores");
  EXPECT_EQ(web.metadata().request_milli_quantity(), 1500u);
  EXPECT_TRUE(web.metadata().use_milli_quantity());
  EXPECT_THAT(web.metadata().labels(), ElementsAre(Pair("app", "web")));
  EXPECT_EQ(web.allocation_info().owner_pool_name(), "share");
  EXPECT_THAT(web.allocation_info().topology_aware_assignments(), IsEmpty());
}

TEST(KatalystQuestionTest, ReportsExclusiveCpusOfAContainer) {
  NodeSight node = TwoPools();
  const ContainerRequest asked = Asked("db", 2);
  node.own_cpus.emplace(asked.key, CpuSet{3, 6});
  node.requests.emplace(asked.key, asked);
  const cpuadvisor::GetAdviceRequest question = QuestionOf(node);
  const cpuadvisor::ContainerAllocationInfo& db =
      question.entries().at("db-uid").entries().at("main");
  EXPECT_EQ(db.metadata().qos_level(), "dedicated_cores");
  EXPECT_EQ(db.allocation_info().owner_pool_name(), "dedicated");
  EXPECT_THAT(db.allocation_info().topology_aware_assignments(),
              UnorderedElementsAre(Pair(0u, "3"), Pair(1u, "6")));
}

TEST(KatalystQuestionTest, ReportsTheLevelThatThePodNames) {
  NodeSight node = TwoPools();
  ContainerRequest asked = Asked("batch", 1);
  asked.annotations.Edit()["katalyst.kubewharf.io/qos_level"] = "reclaimed_cores";
  node.containers.push_back({asked.key, "share", 1000, 1000});
  node.requests.emplace(asked.key, asked);
  EXPECT_EQ(QuestionOf(node).entries().at("batch-uid").entries().at("main").metadata().qos_level(),
            "reclaimed_cores");
}

TEST(KatalystQuestionTest, LeavesOutContainersWhoseRequestIsNotKnown) {
  NodeSight node = TwoPools();
  node.containers.push_back({{.pod_uid = "web-uid", .container = "main"}, "share", 1500, 1500});
  EXPECT_FALSE(QuestionOf(node).entries().contains("web-uid"));
}

TEST(KatalystAnswerTest, SumsAPoolsBlocksOfAllNumaNodes) {
  cpuadvisor::GetAdviceResponse answer;
  AddBlock(answer, {"share", ""}, 0, 2, "a");
  AddBlock(answer, {"share", ""}, 0, 1, "b");
  AddBlock(answer, {"share", ""}, 1, 1, "");
  const auto advice = AdviceIn(answer, TwoPools());
  ASSERT_TRUE(test::IsOk(advice.status()));
  EXPECT_THAT(advice->pools, ElementsAre(FieldsAre("share", 4, "Katalyst's advisor")));
}

TEST(KatalystAnswerTest, CountsSharedCpusForContainersThatDoNotBorrowThem) {
  cpuadvisor::GetAdviceResponse answer;
  AddBlock(answer, {"share", ""}, -1, 6, "shared");
  AddBlock(answer, {"reclaim", ""}, -1, 6, "shared");
  AddBlock(answer, {"reclaim", ""}, -1, 2, "rest");
  AddBlock(answer, {"reclaim", ""}, 0, 3, "of-db");
  AddBlock(answer, {"db-uid", "main"}, 0, 3, "of-db");
  const auto advice = AdviceIn(answer, TwoPools());
  ASSERT_TRUE(test::IsOk(advice.status()));
  EXPECT_THAT(advice->pools, ElementsAre(FieldsAre("reclaim", 2, "Katalyst's advisor"),
                                         FieldsAre("share", 6, "Katalyst's advisor")));
}

TEST(KatalystAnswerTest, NamesPoolsThatTheNodeDoesNotHave) {
  cpuadvisor::GetAdviceResponse answer;
  AddBlock(answer, {"isolation0", ""}, 0, 2, "a");
  AddBlock(answer, {"reserve", ""}, 0, 2, "b");
  const auto advice = AdviceIn(answer, TwoPools());
  ASSERT_TRUE(test::IsOk(advice.status()));
  EXPECT_THAT(advice->pools, IsEmpty());
  EXPECT_THAT(advice->unknown, ElementsAre("isolation0"));
}

TEST(KatalystAnswerTest, BoundsWhatNoMachineHas) {
  cpuadvisor::GetAdviceResponse answer;
  AddBlock(answer, {"share", ""}, 0, UINT64_MAX, "a");
  AddBlock(answer, {"share", ""}, 1, UINT64_MAX, "b");
  const auto advice = AdviceIn(answer, TwoPools());
  ASSERT_TRUE(test::IsOk(advice.status()));
  EXPECT_THAT(advice->pools,
              ElementsAre(FieldsAre("share", CpuSet::kMaxIds, "Katalyst's advisor")));
}

TEST(KatalystAnswerTest, SaysHowMuchBatchWorkMayCountOn) {
  cpuadvisor::GetAdviceResponse answer;
  (*answer.add_extra_entries()->mutable_calculation_result()->mutable_values())["cgroup_config"] =
      "{}";
  (*answer.add_extra_entries()
        ->mutable_calculation_result()
        ->mutable_values())["cpu_numa_headroom"] = R"({"0": 3.5, "1": 12})";
  const auto advice = AdviceIn(answer, TwoPools());
  ASSERT_TRUE(test::IsOk(advice.status()));
  EXPECT_THAT(advice->headroom, ElementsAre(Pair(0, 3.5), Pair(1, 12.0)));
}

class BadHeadroomTest : public testing::TestWithParam<const char*> {};

TEST_P(BadHeadroomTest, IsRejectedWithItsText) {
  cpuadvisor::GetAdviceResponse answer;
  (*answer.add_extra_entries()
        ->mutable_calculation_result()
        ->mutable_values())["cpu_numa_headroom"] = GetParam();
  const auto advice = AdviceIn(answer, TwoPools());
  EXPECT_EQ(advice.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(advice.status()), HasSubstr("cannot read cpu_numa_headroom"));
}

INSTANTIATE_TEST_SUITE_P(Texts, BadHeadroomTest,
                         testing::Values("", "[]", "{", R"({"": 1})", R"({"a": 1})",
                                         R"({"0": "1"})", R"({"0x": 1})"));

}  // namespace
}  // namespace qrm::cpu::katalyst_words_test
