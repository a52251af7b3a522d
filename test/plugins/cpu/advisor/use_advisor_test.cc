// The built-in advisor on cgroups that the test writes.
#include "plugins/cpu/advisor/use_advisor.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/is_ok.h"
#include "test/support/manual_clock.h"
#include "test/support/temp_dir.h"

namespace qrm::cpu::use_advisor_test {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr char kUid[] = "11111111-2222-3333-4444-555555555555";
constexpr char kBurstable[] = "kubepods/burstable/pod11111111-2222-3333-4444-555555555555";
constexpr char kSystemd[] =
    "kubepods.slice/kubepods-burstable.slice/"
    "kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice";
constexpr char kGuaranteed[] =
    "kubepods.slice/kubepods-pod11111111_2222_3333_4444_555555555555.slice";

class UseAdvisorTest : public testing::Test {
 protected:
  /// Since its start, the pod has run for `used` seconds and waited for `stalled`.
  void Write(const std::string& cgroup, int used, int stalled) {
    const std::filesystem::path directory = root_ / cgroup;
    std::filesystem::create_directories(directory);
    std::ofstream(directory / "cpu.stat")
        << fmt::format("usage_usec {}000000\nuser_usec 1\nsystem_usec 1\n", used);
    std::ofstream(directory / "cpu.pressure") << fmt::format(
        "some avg10=0.00 avg60=0.00 avg300=0.00 total={}000000\nfull avg10=0.00 "
        "avg60=0.00 avg300=0.00 total=0\n",
        stalled);
  }

  UseRule Rule() const { return {.every = hours(1), .cgroup_root = root_.path()}; }

  test::TempDir root_;
  test::ManualClock clock_;
};

TEST_F(UseAdvisorTest, FindsPodsWhereverKubeletPutsThem) {
  for (const char* const cgroup : {kBurstable, kSystemd, kGuaranteed}) {
    PodCgroups cgroups(root_.path());
    Write(cgroup, 10, 1);
    ASSERT_TRUE(test::IsOk(cgroups.Look({kUid}, clock_.Steady()).status()));
    Write(cgroup, 50, 3);
    const auto uses = cgroups.Look({kUid}, clock_.Steady() + seconds(10));
    ASSERT_TRUE(test::IsOk(uses.status()));
    ASSERT_TRUE(uses->contains(kUid)) << cgroup;
    EXPECT_DOUBLE_EQ(uses->at(kUid).cpus, 4);
    EXPECT_DOUBLE_EQ(uses->at(kUid).stalled, 0.2);
    std::filesystem::remove_all(root_ / cgroup);
  }
}

TEST_F(UseAdvisorTest, ReportsNothingAboutPodsThatAreNewOrGone) {
  PodCgroups cgroups(root_.path());
  Write(kBurstable, 10, 0);
  EXPECT_THAT(*cgroups.Look({kUid}, clock_.Steady()), IsEmpty());
  EXPECT_THAT(*cgroups.Look({"another"}, clock_.Steady() + seconds(10)), IsEmpty());
  // What it used between looks does not count.
  EXPECT_THAT(*cgroups.Look({kUid}, clock_.Steady() + seconds(20)), IsEmpty());
}

TEST_F(UseAdvisorTest, SaysWhereItMissesKubeletsCgroups) {
  PodCgroups cgroups(root_.path());
  EXPECT_THAT(MessageOf(cgroups.Look({kUid}, clock_.Steady()).status()),
              HasSubstr("has no cgroups of kubelet"));
}

NodeSight::Container Container(const std::string& pod, const std::string& name,
                               const std::string& pool, int64_t milli_cpus) {
  return {{.pod_uid = pod, .container = name}, pool, milli_cpus, milli_cpus};
}

TEST_F(UseAdvisorTest, SaysThatItMissesPressure) {
  Write(kBurstable, 10, 1);
  PodCgroups cgroups(root_.path());
  ASSERT_TRUE(test::IsOk(cgroups.Look({kUid}, clock_.Steady()).status()));
  EXPECT_THAT(cgroups.without_pressure(), IsEmpty());
  std::filesystem::remove(std::filesystem::path(root_ / kBurstable) / "cpu.pressure");
  ASSERT_TRUE(test::IsOk(cgroups.Look({kUid}, clock_.Steady() + seconds(1)).status()));
  EXPECT_THAT(cgroups.without_pressure(), HasSubstr("has no cpu.pressure; use cgroup v2"));
}

TEST_F(UseAdvisorTest, SplitsWhatAPodUsesAmongItsPools) {
  NodeSight node;
  node.containers = {Container("a", "x", "web", 3000),   Container("a", "y", "batch", 1000),
                     Container("b", "x", "web", 0),      Container("b", "y", "batch", 0),
                     Container("new", "x", "web", 2000), Container("own", "x", "web", 400)};
  node.with_own_cpus = {"own"};
  const auto pools =
      UseByPool(UseRule(), node, {{"a", {4, 0.1}}, {"b", {2, 0.3}}, {"own", {9, 1}}});
  EXPECT_DOUBLE_EQ(pools.at("web").cpus, 3 + 1 + 2 * 0.75 + 0.4 * 0.75);
  EXPECT_DOUBLE_EQ(pools.at("batch").cpus, 1 + 1);
  EXPECT_DOUBLE_EQ(pools.at("web").stalled, 0.3);
}

TEST_F(UseAdvisorTest, AdvisesByTheUseSinceTheLastLook) {
  AdviceDesk desk({.use = Rule(), .pools = {"web"}}, clock_, [] {});
  UseAdvisor advisor(Rule(), desk, clock_);
  NodeSight node;
  node.advised = {
      .asks = {{"web", {.min = 1, .wish = 1, .max = 40}}}, .sizes = {{"web", 2}}, .capacity = 64};
  node.containers = {Container(kUid, "x", "web", 1000)};
  desk.Show(node);
  Write(kBurstable, 10, 0);
  advisor.Look();
  EXPECT_THAT(desk.InForce(), ElementsAre(Pair("web", 1)));
  Write(kBurstable, 70, 0);
  clock_.Advance(seconds(10));
  advisor.Look();
  EXPECT_THAT(desk.InForce(), ElementsAre(Pair("web", 8)));
  EXPECT_THAT(desk.Used(), ElementsAre(Pair("web", 8)));
}

TEST_F(UseAdvisorTest, LooksEachSecondUntilAPoolThatNeedsItHasItsRequests) {
  UseRule rule = Rule();
  rule.every = seconds(10);
  AdviceDesk desk({.use = rule, .pools = {"web"}}, clock_, [] {});
  UseAdvisor advisor(rule, desk, clock_);
  NodeSight node;
  node.advised = {
      .asks = {{"web", {.min = 1, .wish = 16, .firm = 16, .max = 40, .below_firm = true}}},
      .sizes = {{"web", 16}},
      .capacity = 64};
  node.containers = {Container(kUid, "x", "web", 16000)};
  desk.Show(node);
  Write(kBurstable, 10, 0);
  EXPECT_EQ(advisor.Look(), seconds(10));
  clock_.Advance(seconds(10));
  EXPECT_EQ(advisor.Look(), seconds(10));
  EXPECT_THAT(desk.InForce(), ElementsAre(Pair("web", 0))) << "it is idle";

  node.advised.sizes["web"] = 4;
  desk.Show(node);
  Write(kBurstable, 11, 0);
  clock_.Advance(seconds(10));
  EXPECT_EQ(advisor.Look(), seconds(1));
  Write(kBurstable, 15, 0);
  clock_.Advance(seconds(1));
  EXPECT_EQ(advisor.Look(), seconds(1));
  EXPECT_THAT(desk.InForce(), ElementsAre(Pair("web", 16)));
}

}  // namespace
}  // namespace qrm::cpu::use_advisor_test
