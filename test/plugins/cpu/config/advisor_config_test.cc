// Which advisor may advise which pools.
#include "plugins/cpu/config/advisor_config.h"

#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"
#include "plugins/cpu/config/config.h"

namespace qrm::cpu::advisor_config_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kPools[] =
    "pools: {a: {size: {max: 9, per: advice}}, b: {size: {max: 9}}, c: {cpus: 0-3}}\n";

StatusOr<CpuPluginConfig> Read(const std::string& text) {
  return ParseCpuConfig(*config::Section::Parse(text, "cpu.yaml"));
}

TEST(AdvisorConfigTest, IsForThePoolsThatWaitForAdvice) {
  const auto config = Read(kPools + std::string("advisor: {socket: /run/advisor.sock}\n"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->pools.at("a").size.value_or(ElasticSize{}).per, ElasticSize::Per::kAdvice);
  EXPECT_THAT(config->advisor.pools, ElementsAre("a"));
  EXPECT_EQ(config->advisor.lease, seconds(30));
  EXPECT_EQ(config->advisor.hold, milliseconds(0));
  EXPECT_EQ(config->advisor.max_step, 0);
}

TEST(AdvisorConfigTest, LeavesPoolsTheirRequestsWhereTheyDoNotAllowOtherwise) {
  const auto config = Read(
      "pools: {a: {size: {below-requests: allow}}, b: {size: {below-requests: refuse}}, "
      "c: {size: {}}}");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->pools.at("a").size.value_or(ElasticSize{}).below_requests);
  EXPECT_FALSE(config->pools.at("b").size.value_or(ElasticSize{}).below_requests);
  EXPECT_FALSE(config->pools.at("c").size.value_or(ElasticSize{}).below_requests);
  EXPECT_THAT(MessageOf(Read("pools: {a: {size: {below-requests: never}}}").status()),
              HasSubstr("write refuse or allow"));
}

TEST(AdvisorConfigTest, HasItsKeys) {
  const auto config = Read(kPools + std::string("advisor: {socket: /run/advisor.sock, lease: 10s, "
                                                "max-step: 4, pools: [a, b], on-expiry: hold 5m "
                                                "then request}\n"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->advisor, (AdvisorConfig{.socket = "/run/advisor.sock",
                                            .lease = seconds(10),
                                            .hold = minutes(5),
                                            .max_step = 4,
                                            .pools = {"a", "b"}}));
}

TEST(AdvisorConfigTest, CanBeTheBuiltInAdvisor) {
  const auto config = Read(kPools + std::string("advisor: {use: true}\n"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->advisor.use, UseRule());
  EXPECT_TRUE(config->advisor.IsThere());
  const auto other = Read(kPools + std::string("advisor: {use: {target: 50%, pressure: 5%, every: "
                                               "30s, cgroup-root: /host/cgroup}}\n"));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->advisor.use, (UseRule{.target_percent = 50,
                                         .pressure_percent = 5,
                                         .every = seconds(30),
                                         .cgroup_root = "/host/cgroup"}));
}

TEST(AdvisorConfigTest, CanBeKatalysts) {
  const auto config = Read(kPools + std::string("advisor: {katalyst: /run/cpu_advisor.sock}\n"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->advisor.katalyst, KatalystRule{.socket = "/run/cpu_advisor.sock"});
  EXPECT_TRUE(config->advisor.IsThere());
  const auto other =
      Read(kPools + std::string("advisor: {katalyst: {socket: /run/a.sock, every: 30s}}\n"));
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_EQ(other->advisor.katalyst, (KatalystRule{.socket = "/run/a.sock", .every = seconds(30)}));
}

TEST(AdvisorConfigTest, IsNoneWithoutTheKey) {
  const auto config = Read("pools: {b: {size: {max: 9}}}\n");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->advisor, AdvisorConfig());
}

struct RefusedCase {
  const char* name;
  const char* advisor;
  const char* message;
};
class RejectedAdvisorTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(RejectedAdvisorTest, NamesTheMistake) {
  const auto config = Read(kPools + std::string(GetParam().advisor));
  EXPECT_EQ(config.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(config.status()), HasSubstr(GetParam().message));
}

const RefusedCase kRefused[] = {
    {"NobodyToWaitFor", "", "pools.a.size.per is 'advice', but no advisor may advise the pool"},
    {"NotAmongThePools", "advisor: {socket: /a, pools: [b]}", "no advisor may advise the pool"},
    {"NoSocket", "advisor: {}", "advisor.socket is '', which is not a path of a socket"},
    {"RelativeSocket", "advisor: {socket: a.sock}", "is 'a.sock', which is not a path"},
    {"UnknownKey", "advisor: {socket: /a, path: b}", "advisor.path"},
    {"UnknownPool", "advisor: {socket: /a, pools: [a, d]}",
     "has 'd', which is not a pool with a size"},
    {"PoolWithoutASize", "advisor: {socket: /a, pools: [a, c]}",
     "has 'c', which is not a pool with a size"},
    {"NoLease", "advisor: {socket: /a, lease: 0s}", "advisor.lease is '0s'"},
    {"EndlessLease", "advisor: {socket: /a, lease: 2h}", "write a duration from 1s to 1h"},
    {"NeverBusy", "advisor: {use: {target: 0%}}", "is '0%', which is not a percentage"},
    {"UnknownUse", "advisor: {use: {goal: 1%}}", "advisor.use.goal"},
    {"LookingAllTheTime", "advisor: {use: {every: 1ms}}", "advisor.use.every is '1ms'"},
    {"KatalystNowhere", "advisor: {katalyst: {every: 5s}}", "advisor.katalyst.socket is ''"},
    {"KatalystsRelativeSocket", "advisor: {katalyst: a.sock}", "advisor.katalyst is 'a.sock'"},
    {"AskedAllTheTime", "advisor: {katalyst: {socket: /a, every: 1ms}}", "every is '1ms'"},
    {"UnknownOfKatalyst", "advisor: {katalyst: {path: /a}}", "advisor.katalyst.path"},
    {"UnknownExpiry", "advisor: {socket: /a, on-expiry: hold}", "hold 5m then request"},
    {"HoldForNoTime", "advisor: {socket: /a, on-expiry: hold x then request}", "is 'hold x then"},
    {"StepBeyondReason", "advisor: {socket: /a, max-step: 100000}", "more than any machine has"},
};
INSTANTIATE_TEST_SUITE_P(Texts, RejectedAdvisorTest, testing::ValuesIn(kRefused),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace qrm::cpu::advisor_config_test
