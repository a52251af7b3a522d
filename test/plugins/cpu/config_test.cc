// The cpu plugin's configuration: what it means, and what is refused.
#include "plugins/cpu/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"

namespace qrm::cpu {
namespace {

using placement::NumaSpan;
using testing::ElementsAre;
using testing::HasSubstr;

StatusOr<CpuPluginConfig> Read(const std::string& text) {
  QRM_ASSIGN_OR_RETURN(const config::Section section, config::Section::Parse(text, "cpu.yaml"));
  return ParseCpuConfig(section);
}

TEST(CpuConfigTest, ReadsEveryKey) {
  const StatusOr<CpuPluginConfig> config = Read(R"(
reserved-cpus: 0-1
default-pool: online
pools:
  online: {cpus: "4-7", roles: [web]}
roles:
  reranker: {numa: even, whole-cores: true, align-l3: true, share-numa-with: [reranker, "*"]}
  plain:
static: {numa: one, whole-cores: true}
)");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->reserved, CpuSet::Range(0, 1));
  EXPECT_EQ(config->default_pool, "online");
  EXPECT_EQ(config->pools.at("online").cpus, CpuSet::Range(4, 7));
  EXPECT_THAT(config->pools.at("online").roles, ElementsAre("web"));
  EXPECT_EQ(config->roles.at("reranker"),
            (ExclusiveRule{.numa = NumaSpan::kEven,
                           .whole_cores = true,
                           .align_l3 = true,
                           .share = {.anyone = true, .roles = {"reranker"}}}));
  EXPECT_EQ(config->roles.at("plain"), ExclusiveRule{});
  ASSERT_TRUE(config->static_rule.has_value());
  EXPECT_EQ(config->static_rule->numa, NumaSpan::kOne);
  EXPECT_TRUE(config->static_rule->whole_cores);
}

TEST(CpuConfigTest, IsAllDefaultPoolWhenEmpty) {
  const StatusOr<CpuPluginConfig> config = Read("");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->reserved.Empty());
  EXPECT_TRUE(config->pools.empty());
  EXPECT_TRUE(config->roles.empty());
  EXPECT_EQ(config->default_pool, kDefaultPool);
  EXPECT_FALSE(config->static_rule.has_value());
}

struct RefusedCase {
  std::string name;
  std::string text;
  std::string want;
};
class RefusedCpuConfigTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(RefusedCpuConfigTest, NamesTheMistake) {
  const Status status = Read(GetParam().text).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("cannot read cpu.yaml:"));
  EXPECT_THAT(MessageOf(status), HasSubstr(GetParam().want));
}

const RefusedCase kRefused[] = {
    {"UnknownKey", "pool: {}", "the keys here are reserved-cpus, pools"},
    {"UnknownPoolKey", "pools: {a: {cpu: 1}}", "pools.a.cpu"},
    {"UnknownRoleKey", "roles: {a: {cpus: 1}}", "roles.a.cpus"},
    {"BadReserved", "reserved-cpus: a", "no CPU list"},
    {"BadSpan", "roles: {a: {numa: two}}", "one or fewest or even or any"},
    {"PoolNamedDefault", "pools: {default: {cpus: 1}}", "always exists"},
    {"RoleTwice", "pools: {a: {cpus: 1, roles: [x]}}\nroles: {x: {}}", "placed elsewhere"},
    {"RoleInTwoPools", "pools: {a: {roles: [x]}, b: {roles: [x]}}", "placed elsewhere"},
    {"UnknownDefaultPool", "default-pool: a", "no pool"},
    {"UnknownPartner", "roles: {a: {share-numa-with: [b]}}", "which is no role"},
    {"OneSidedSharing", "roles: {a: {share-numa-with: [b]}, b: {}}",
     "add a to share-numa-with of b"},
    {"BadStatic", "static: maybe", "true or false"},
};
INSTANTIATE_TEST_SUITE_P(Texts, RefusedCpuConfigTest, testing::ValuesIn(kRefused),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::cpu
