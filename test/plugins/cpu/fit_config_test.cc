// Which CPUs are reserved where only their number is configured.
#include "plugins/cpu/fit_config.h"

#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/plugins/cpu/elastic_fixture.h"

namespace qrm::cpu::fit_config_test {
namespace {

using testing::HasSubstr;

struct CountCase {
  std::string name;
  int count;
  std::string want;
};
class ReservedCountTest : public testing::TestWithParam<CountCase> {};

TEST_P(ReservedCountTest, TakesWholeCoresOfOneNodeAfterAnother) {
  const auto fitting = FitCpuConfig(
      TwoNodes(), Config(fmt::format("reserved-cpus: {{count: {}}}", GetParam().count)));
  ASSERT_TRUE(fitting.ok()) << fitting.status();
  EXPECT_EQ(ToString(fitting->config.reserved), GetParam().want);
}

const CountCase kCounts[] = {
    {"None", 0, ""},
    {"OneThread", 1, "0"},
    {"OneCore", 2, "0,32"},
    {"ACoreOfEachNode", 4, "0,16,32,48"},
    {"PartOfACoreAtLast", 5, "0-1,16,32,48"},
    {"AllButOne", 63, "0-62"},
};
INSTANTIATE_TEST_SUITE_P(Counts, ReservedCountTest, testing::ValuesIn(kCounts),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(FitConfigTest, LeavesContainersACpu) {
  const auto fitting = FitCpuConfig(TwoNodes(), Config("reserved-cpus: {count: 64}"));
  EXPECT_THAT(
      MessageOf(fitting.status()),
      HasSubstr("cannot reserve 64 CPUs: the machine has 64 that are not isolated, and one"));
}

TEST(FitConfigTest, ReservesNoIsolatedCpu) {
  const auto fitting =
      FitCpuConfig(TwoNodes(), Config("{reserved-cpus: {count: 2}, isolated-cpus: \"0-3,32-35\"}"));
  ASSERT_TRUE(fitting.ok()) << fitting.status();
  EXPECT_EQ(ToString(fitting->config.reserved), "4,36");
}

TEST(FitConfigTest, IsThePoolThatRulesName) {
  test::Drive drive(
      Make("{reserved-cpus: {count: 2}, rules: [{select: {}, pool: reserved}]}", TwoNodes()));
  const auto given = drive.Admit(test::Request("a", "", "cpu", 1));
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->value, "0,32");
}

}  // namespace
}  // namespace qrm::cpu::fit_config_test
