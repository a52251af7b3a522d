// Containers with exclusive CPUs beside a pool, for the fraction of what they request and for their
// helpers.
#include <chrono>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/elastic_fixture.h"

namespace qrm::cpu::mixed_test {
namespace {

using std::chrono::seconds;
using test::Drive;
using test::Request;
using testing::HasSubstr;

constexpr char kDataplane[] = R"(
rules: [{select: {role: dpdk}, grant: dataplane}, {select: {role: batch}, pool: batch}]
grants:
  dataplane: {whole-cores: true, plus: helpers}
pools:
  helpers: {size: {min: 2, max: 4}}
  batch: {size: {min: 1}}
  default: {size: {min: 2}}
)";

CpuSet Cpus(const std::string& list) {
  return CpuSet::Parse(list).value_or(CpuSet());
}

/// Another container of `pod`, beside its main one.
ContainerRequest Sidecar(const std::string& pod, double cpus) {
  ContainerRequest request = Request(pod, "dpdk", "cpu", cpus);
  request.key.container = "helper";
  request.type = ContainerType::kSidecar;
  return request;
}

using MixedTest = ElasticPlugins;

TEST_F(MixedTest, OwnsWholeCpusAndUsesThePoolForTheFraction) {
  Drive drive = Start(kDataplane);
  Admit(drive, "a", "dpdk", 4.5);
  const ResourceAllocation& given = drive.Of("a");
  EXPECT_TRUE(given.exclusive);
  EXPECT_EQ(Cpus(given.value).Count(), 4);
  EXPECT_EQ(Cpus(given.shares), Pool(drive, "helpers"));
  EXPECT_FALSE(Cpus(given.value).Intersects(Cpus(given.shares)));
}

TEST_F(MixedTest, AsksAPoolThatFollowsLimitsForNoMoreThanTheFraction) {
  Drive drive = Start(R"(
rules: [{select: {role: dpdk}, grant: dataplane}]
grants: {dataplane: {plus: helpers}}
pools: {helpers: {size: {min: 1, per: limit}}, default: {size: {min: 2}}}
)");
  ContainerRequest request = Request("a", "dpdk", "cpu", 4.5);
  request.limit = 9;
  ASSERT_TRUE(drive.Admit(request).ok());
  EXPECT_EQ(Size(drive, "helpers"), 1);
}

TEST_F(MixedTest, SendsItsProgramBothLists) {
  Drive drive = Start(kDataplane);
  Admit(drive, "a", "dpdk", 4.5);
  const ResourceAllocation& given = drive.Of("a");
  EXPECT_EQ(given.envs.at("QRM_OWN_CPUS"), given.value);
  EXPECT_EQ(given.envs.at("QRM_SHARED_CPUS"), given.shares);
}

TEST_F(MixedTest, OtherContainersOfThePodUseThePoolOnly) {
  Drive drive = Start(kDataplane);
  Admit(drive, "a", "dpdk", 4.5);
  const auto helper = drive.Admit(Sidecar("a", 1));
  ASSERT_TRUE(helper.ok()) << helper.status();
  EXPECT_FALSE(helper->exclusive);
  EXPECT_EQ(Cpus(helper->value), Pool(drive, "helpers"));
}

TEST_F(MixedTest, LessThanACpuComesFromThePoolOnly) {
  Drive drive = Start(kDataplane);
  Admit(drive, "a", "dpdk", 0.5);
  EXPECT_FALSE(drive.Of("a").exclusive);
  EXPECT_EQ(Cpus(drive.Value("a")), Pool(drive, "helpers"));
  EXPECT_THAT(drive.Of("a").decided_by, HasSubstr("but the container requests less than a CPU"));
}

TEST_F(MixedTest, ThePoolGrowsByFractionsAndHelpers) {
  Drive drive = Start(kDataplane);
  Admit(drive, "a", "dpdk", 2.75);
  EXPECT_EQ(Pool(drive, "helpers").Count(), 2);
  Admit(drive, "b", "dpdk", 2.75);
  EXPECT_EQ(Pool(drive, "helpers").Count(), 2);
  ASSERT_TRUE(drive.Admit(Sidecar("b", 1)).ok());
  EXPECT_EQ(Pool(drive, "helpers").Count(), 3);
}

TEST_F(MixedTest, FollowsThePoolThatGrowsAndShrinks) {
  Drive drive = Start(kDataplane);
  Admit(drive, "a", "dpdk", 2.5);
  const std::string own = drive.Value("a");
  ASSERT_TRUE(drive.Admit(Sidecar("b", 4)).ok());
  drive.Reconcile();
  EXPECT_EQ(Cpus(drive.Of("a").shares), Pool(drive, "helpers"));
  EXPECT_EQ(Cpus(drive.Of("a").shares).Count(), 4);
  EXPECT_EQ(drive.Of("a").envs.at("QRM_SHARED_CPUS"), drive.Of("a").shares);
  drive.RemovePod("b");
  drive.Reconcile();
  clock_.Advance(seconds(30));
  drive.Reconcile();
  EXPECT_EQ(Cpus(drive.Of("a").shares).Count(), 2);
  EXPECT_EQ(drive.Value("a"), own);
}

TEST_F(MixedTest, KeepsThePoolFromBeingEmptied) {
  Drive drive = Start(R"(
rules: [{select: {role: dpdk}, grant: dataplane}]
grants: {dataplane: {plus: helpers}}
pools: {helpers: {cpus: 8-9}}
)");
  Admit(drive, "a", "dpdk", 2.5);
  EXPECT_THAT(MessageOf(drive.plugin().SetPools({{"helpers", {}}})),
              HasSubstr("1 containers use it"));
}

TEST_F(MixedTest, UsesTheDefaultPoolWhereItIsNamed) {
  Drive drive = Start(R"(
rules: [{select: {role: dpdk}, grant: dataplane}]
grants: {dataplane: {plus: default}}
)");
  Admit(drive, "a", "dpdk", 2.5);
  EXPECT_EQ(Cpus(drive.Of("a").shares), Pool(drive, "default"));
  EXPECT_EQ(Pool(drive, "default").Count(), 62);
}

TEST_F(MixedTest, DoesNotMoveAtARestart) {
  Drive before = Start(kDataplane);
  Admit(before, "a", "dpdk", 4.5);
  ASSERT_TRUE(before.Admit(Sidecar("b", 3)).ok());
  before.Reconcile();
  const std::string was = before.plugin().ExportState(before.grants());
  Drive after = Restart(kDataplane, before);
  after.Reconcile();
  EXPECT_EQ(after.plugin().ExportState(after.grants()), was);
}

TEST_F(MixedTest, UsesTheDefaultPoolWhenItsPoolIsGone) {
  Drive before = Start(kDataplane);
  Admit(before, "a", "dpdk", 4.5);
  const std::string own = before.Value("a");
  Drive after = Restart("pools: {default: {size: {min: 3}}}", before);
  after.Reconcile();
  EXPECT_EQ(after.Value("a"), own);
  EXPECT_EQ(Cpus(after.Of("a").shares), Pool(after, "default"));
}

TEST_F(MixedTest, IsRejectedWhereThePoolHasNoCpuLeftForIt) {
  Drive drive = Start(R"(
rules: [{select: {role: dpdk}, grant: dataplane}]
grants: {dataplane: {numa: any, plus: helpers}}
pools: {helpers: {size: {max: 4}}, default: {size: {min: 2}}}
)");
  EXPECT_THAT(MessageOf(drive.plugin().Hints(Request("a", "dpdk", "cpu", 62.5)).status()),
              HasSubstr("pool helpers has no CPU, and none is left for it"));
  Admit(drive, "a", "dpdk", 61.5);
}

TEST_F(MixedTest, WholeCoresCountWithoutTheFraction) {
  Drive drive = Start(kDataplane);
  EXPECT_FALSE(drive.Admit(Request("a", "dpdk", "cpu", 3.5)).ok());
  EXPECT_TRUE(drive.Admit(Request("a", "dpdk", "cpu", 2.5)).ok());
}

/// Random admissions, removals and restarts.
class MixedHistoryTest : public ElasticPlugins {
 protected:
  void Play(unsigned seed);

  static void Check(const Drive& drive) {
    CpuSet owned;
    for (const auto& [key, grant] : drive.grants()) {
      if (grant.allocation->exclusive) {
        const CpuSet cpus = Cpus(grant.allocation->value);
        ASSERT_FALSE(cpus.Intersects(owned)) << ToString(cpus) << " has two owners";
        owned |= cpus;
      }
    }
    for (const auto& [key, grant] : drive.grants()) {
      const CpuSet shared =
          Cpus(grant.allocation->exclusive ? grant.allocation->shares : grant.allocation->value);
      ASSERT_FALSE(shared.Intersects(owned)) << key.pod_uid;
      ASSERT_FALSE(shared.Empty()) << key.pod_uid;
    }
  }
};

void MixedHistoryTest::Play(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&random](int bound) {
    return std::uniform_int_distribution<int>(0, bound - 1)(random);
  };
  Drive drive = Start(kDataplane);
  int admitted = 0;
  for (int step = 0; step < 300; ++step) {
    const std::string pod = "pod" + std::to_string(below(12));
    const double cpus = 0.25 * (1 + below(60));
    switch (below(6)) {
      case 0:
        drive.RemovePod(pod);
        break;
      case 1:
        drive = Restart(kDataplane, drive);
        break;
      case 2:
        admitted += drive.Admit(Sidecar(pod, cpus)).ok() ? 1 : 0;
        break;
      default:
        drive.RemovePod(pod);
        admitted +=
            drive.Admit(Request(pod, below(2) == 0 ? "dpdk" : "batch", "cpu", cpus)).ok() ? 1 : 0;
    }
    clock_.Advance(seconds(below(20)));
    drive.Reconcile();
    ASSERT_NO_FATAL_FAILURE(Check(drive)) << "step " << step;
  }
  EXPECT_GT(admitted, 50);
}

TEST_F(MixedHistoryTest, NoContainerSharesExclusiveCpus) {
  for (unsigned seed = 1; seed <= 16; ++seed) {
    SCOPED_TRACE(seed);
    ASSERT_NO_FATAL_FAILURE(Play(seed));
  }
}

}  // namespace
}  // namespace qrm::cpu::mixed_test
