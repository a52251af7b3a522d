// The cpu plugin's configuration: what it means, and what is rejected.
#include "plugins/cpu/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/section.h"

namespace qrm::cpu::config_test {
namespace {

using rules::NumaSpan;
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
static:
  full-pcpus-only: true
  align-by-socket: true
  strict-cpu-reservation: true
  reserved-cpu-count: 2
)");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->reserved, CpuSet::Range(0, 1));
  EXPECT_EQ(config->default_pool, "online");
  EXPECT_EQ(config->pools.at("online").cpus, CpuSet::Range(4, 7));
  EXPECT_THAT(config->pools.at("online").roles, ElementsAre("web"));
  EXPECT_EQ(config->grants.at("reranker").rule,
            (ExclusiveRule{.numa = NumaSpan::kEven,
                           .whole_cores = true,
                           .align_l3 = true,
                           .share = {.anyone = true, .roles = {"reranker"}}}));
  EXPECT_EQ(config->grants.at("plain").rule, ExclusiveRule{});
  const StaticConfig static_mode = config->static_mode.value_or(StaticConfig());
  EXPECT_TRUE(static_mode.options.full_physical_cpus_only);
  EXPECT_TRUE(static_mode.options.align_by_socket);
  EXPECT_FALSE(static_mode.options.distribute_across_numa);
  EXPECT_TRUE(static_mode.strict_reservation);
  EXPECT_EQ(static_mode.reserved_count, 2);
}

TEST(CpuConfigTest, IsAllDefaultPoolWhenEmpty) {
  const StatusOr<CpuPluginConfig> config = Read("");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->reserved.Empty());
  EXPECT_TRUE(config->pools.empty());
  EXPECT_TRUE(config->grants.empty());
  EXPECT_EQ(config->default_pool, kDefaultPool);
  EXPECT_FALSE(config->static_mode.has_value());
}

struct RefusedCase {
  std::string name;
  std::string text;
  std::string want;
};
class RejectedCpuConfigTest : public testing::TestWithParam<RefusedCase> {};

TEST_P(RejectedCpuConfigTest, NamesTheMistake) {
  const Status status = Read(GetParam().text).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("cannot read cpu.yaml:"));
  EXPECT_THAT(MessageOf(status), HasSubstr(GetParam().want));
}

const RefusedCase kRefused[] = {
    {"UnknownKey", "pool: {}", "the keys here are reserved-cpus, pools"},
    {"UnknownPoolKey", "pools: {a: {cpu: 1}}", "pools.a.cpu"},
    {"UnknownRoleKey", "roles: {a: {cpus: 1}}", "roles.a.cpus"},
    {"BadReserved", "reserved-cpus: a", "which is not a CPU list; write one"},
    {"BadSpan", "roles: {a: {numa: two}}", "one or fewest or even or any"},
    {"PoolNamedDefault", "pools: {default: {cpus: 1}}", "always exists"},
    {"RoleTwice", "pools: {a: {cpus: 1, roles: [x]}}\nroles: {x: {}}", "placed elsewhere"},
    {"RoleInTwoPools", "pools: {a: {roles: [x]}, b: {roles: [x]}}", "placed elsewhere"},
    {"CpuInTwoPools", "pools:\n  a: {cpus: 0-2}\n  b: {cpus: 2-3}",
     ":3: pools.b.cpus has 2, which pool a also has"},
    {"UnknownDefaultPool", "default-pool: a", "is not a pool"},
    {"UnknownPartner", "roles: {a: {share-numa-with: [b]}}", "which is not a role"},
    {"OneSidedSharing", "roles: {a: {share-numa-with: [b]}, b: {}}",
     "add a to share-numa-with of b"},
    {"BadStatic", "static: maybe", "true or false"},
    {"UnknownStaticOption", "static: {numa: one}", "static.numa"},
    {"StaticOptionsThatContradict",
     "static: {full-pcpus-only: true, distribute-cpus-across-cores: true}",
     "full-pcpus-only and distribute-cpus-across-cores"},
    {"ReservedCountOfAnotherList", "reserved-cpus: 0-2\nstatic: {reserved-cpu-count: 2}",
     "has 3 CPUs, but static.reserved-cpu-count is 2"},
    {"TwoReservedCounts", "reserved-cpus: {count: 4}\nstatic: {reserved-cpu-count: 2}",
     "has 4 CPUs, but static.reserved-cpu-count is 2"},
    {"UnknownReservedKey", "reserved-cpus: {number: 4}", "reserved-cpus.number"},
    {"ReservedCountBeyondReason", "reserved-cpus: {count: 100000}",
     "is 100000, which is more than any machine has"},
    {"BadIsolated", "isolated-cpus: maybe", "which is not a CPU list, kernel or none"},
    {"IsolatedAndReserved", "{reserved-cpus: 0-3, isolated-cpus: 3-5}", "has 3 of reserved-cpus"},
    {"BadIsolatedWish", "grants: {a: {isolated: always}}", "never or prefer or require"},
    {"PlusOfNoPool", "grants: {a: {plus: nowhere}}", "is 'nowhere', which is not a pool"},
};
INSTANTIATE_TEST_SUITE_P(Texts, RejectedCpuConfigTest, testing::ValuesIn(kRefused),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::cpu::config_test
