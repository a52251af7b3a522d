// A plan from hints is not used after any change.
#include "plugins/cpu/plan_memo.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/elastic_fixture.h"

namespace qrm::cpu::plan_memo_test {
namespace {

using test::Drive;
using test::Request;

class PlanMemoTest : public ElasticPlugins {
 protected:
  static bool HasPlace(Drive& drive, const ContainerRequest& request) {
    const auto hints = drive.plugin().Hints(request);
    return hints.ok() && !hints->IsImpossible();
  }
  static CpuSet Allocated(Drive& drive, const ContainerRequest& request) {
    const auto given = drive.plugin().Allocate(request, {});
    drive.Keep(request, given);
    return given.ok() ? CpuSet::Parse(given->value).value_or(CpuSet()) : CpuSet();
  }
};

TEST_F(PlanMemoTest, AnotherContainerOfThePoolCounts) {
  Drive drive = Start("pools: {web: {size: {min: 4}, roles: [web]}}");
  const ContainerRequest request = Request("a", "web", "cpu", 3);
  ASSERT_TRUE(HasPlace(drive, request));
  Admit(drive, "b", "web", 3);
  EXPECT_EQ(Allocated(drive, request).Count(), 6);
}

TEST_F(PlanMemoTest, APoolThatWasResizedCounts) {
  Drive drive = Start("{pools: {fixed: {cpus: 60-63}, web: {size: {min: 2}, roles: [web]}}}");
  const ContainerRequest request = Request("a", "web", "cpu", 30);
  ASSERT_TRUE(HasPlace(drive, request));
  ASSERT_TRUE(drive.plugin().SetPools({{"fixed", CpuSet::Range(2, 15)}}).ok());
  EXPECT_FALSE(Allocated(drive, request).Intersects(CpuSet::Range(2, 15)));
  EXPECT_EQ(Pool(drive, "fixed"), CpuSet::Range(2, 15));
}

TEST_F(PlanMemoTest, ACpuThatAnotherProcessOwnsByNowCounts) {
  Drive drive = Start(R"(
roles: {own: {numa: any, share-numa-with: ["*"]}}
pools: {web: {size: {min: 2}, roles: [web]}, default: {size: {min: 2}}}
)");
  const ContainerRequest request = Request("a", "web", "cpu", 30);
  ASSERT_TRUE(HasPlace(drive, request));
  Admit(drive, "b", "own", 20);
  EXPECT_FALSE(Allocated(drive, request).Intersects(*CpuSet::Parse(drive.Value("b"))));
}

TEST_F(PlanMemoTest, AContainerThatIsGoneCountsNoMore) {
  Drive drive = Start("pools: {web: {size: {}, roles: [web], instances: {by: pod, max: 1}}}");
  Admit(drive, "a", "web", 2);
  const ContainerRequest request = Request("b", "web", "cpu", 2);
  ASSERT_FALSE(HasPlace(drive, request));
  drive.RemovePod("a");
  EXPECT_TRUE(HasPlace(drive, request));
}

TEST_F(PlanMemoTest, AnOwnerThatIsGoneCountsNoMore) {
  Drive drive = Start(R"(
roles: {own: {numa: any, share-numa-with: ["*"]}}
pools: {web: {size: {}, roles: [web]}, default: {size: {min: 2}}}
)");
  Admit(drive, "a", "own", 62);
  const ContainerRequest request = Request("b", "web", "cpu", 2);
  ASSERT_FALSE(HasPlace(drive, request));
  drive.RemovePod("a");
  EXPECT_TRUE(HasPlace(drive, request));
}

TEST_F(PlanMemoTest, FindsThePlanForTheSameRequestWhileTheSameCpusAreOffline) {
  PlanMemo memo;
  const Candidate candidate = {.key = {"uid", "c"}, .guest = {.pool = "web"}};
  memo.Keep(candidate, {1}, PoolMap{{"web", {2}}});
  ASSERT_NE(memo.Find(candidate, {1}), nullptr);
  EXPECT_EQ((*memo.Find(candidate, {1}))->at("web"), CpuSet{2});
  EXPECT_EQ(memo.Find(candidate, {}), nullptr);
  EXPECT_EQ(memo.Find({.key = {"uid", "c"}, .guest = {.pool = "web"}, .hint = {0}}, {1}), nullptr);
  memo.Forget();
  EXPECT_EQ(memo.Find(candidate, {1}), nullptr);
}

}  // namespace
}  // namespace qrm::cpu::plan_memo_test
