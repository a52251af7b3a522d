#include "manager/runtime/run_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace qrm::manager::run_options_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(RunOptionsTest, JoinsWhatTheResourcesGive) {
  const RunOptions options =
      MakeRunOptions({{"cpu", ResourceAllocation{.oci_property = "CpusetCpus", .value = "0-1"}},
                      {"nic", ResourceAllocation{.envs = {{"ADDR", "10.0.0.1"}},
                                                 .annotations = {{"netns", "ns1"}},
                                                 .mounts = {{"/dev/shm/nic", "/run/nic", true}},
                                                 .devices = {{"/dev/nic0", "/dev/nic0", "rw"}}}}});
  EXPECT_THAT(options.properties, ElementsAre(Pair("CpusetCpus", "0-1")));
  EXPECT_THAT(options.envs, ElementsAre(Pair("ADDR", "10.0.0.1")));
  EXPECT_THAT(options.annotations, ElementsAre(Pair("netns", "ns1")));
  EXPECT_EQ(options.mounts.size(), 1u);
  EXPECT_EQ(options.devices.size(), 1u);
  EXPECT_THAT(options.conflicts, IsEmpty());
}

TEST(RunOptionsTest, ReportsConflictsOfEveryKindAndLetsTheFirstWin) {
  ResourceAllocation first{.oci_property = "CpusetCpus",
                           .value = "0",
                           .envs = {{"E", "1"}},
                           .annotations = {{"A", "1"}},
                           .mounts = {{"/m", "/one", false}},
                           .devices = {{"/d", "/one", "r"}}};
  ResourceAllocation second = first;
  second.value = "1";
  second.envs["E"] = "2";
  second.annotations["A"] = "2";
  second.mounts[0].host_path = "/two";
  second.devices[0].host_path = "/two";
  const RunOptions options = MakeRunOptions({{"a", first}, {"b", second}});
  EXPECT_EQ(options.properties.at("CpusetCpus"), "0");
  EXPECT_EQ(options.mounts[0].host_path, "/one");
  EXPECT_EQ(options.conflicts.size(), 5u);
  EXPECT_THAT(options.conflicts[0], HasSubstr("a wins"));
}

struct MadeWithCase {
  std::string name;
  placement::MadeWith container;
};
class MadeWithTest : public testing::TestWithParam<MadeWithCase> {};

const ResourceAllocation kDevice = {.envs = {{"LANE", "0"}},
                                    .annotations = {{"lane", "0"}},
                                    .mounts = {{"/etc/lane", "/run/lane", true}},
                                    .devices = {{"/dev/lane", "/dev/lane0", "rw"}}};
const placement::MadeWith kMadeWithAll = {.env = {"A=b", "LANE=0"},
                                          .annotations = {{"lane", "0"}},
                                          .mount_paths = {"/proc", "/etc/lane"},
                                          .device_paths = {"/dev/lane"}};

TEST(RunOptionsTest, ContainerWasMadeWithWhatTheRuntimeReports) {
  EXPECT_TRUE(IsForNewOnly(kDevice));
  EXPECT_TRUE(WasMadeWith(kMadeWithAll, kDevice));
}

TEST(RunOptionsTest, AnEmptyAnnotationIsNeverMissing) {
  EXPECT_TRUE(WasMadeWith({}, {.annotations = {{"nic.qrm.io/problem", ""}}}));
  EXPECT_TRUE(WasMadeWith({.annotations = {{"nic.qrm.io/problem", "has no link"}}},
                          {.annotations = {{"nic.qrm.io/problem", ""}}}));
  EXPECT_FALSE(WasMadeWith({}, {.annotations = {{"nic.qrm.io/problem", "has no link"}}}));
}

TEST_P(MadeWithTest, ContainerThatIsMissingAnyPartWasCreatedWithoutTheOptions) {
  EXPECT_FALSE(WasMadeWith(GetParam().container, kDevice));
}

placement::MadeWith Without(void (*take)(placement::MadeWith&)) {
  placement::MadeWith container = kMadeWithAll;
  take(container);
  return container;
}
const MadeWithCase kLacking[] = {
    {"Variable", Without([](placement::MadeWith& container) { container.env = {"LANE=1"}; })},
    {"Annotation", Without([](placement::MadeWith& container) { container.annotations.clear(); })},
    {"Mount", Without([](placement::MadeWith& container) { container.mount_paths.clear(); })},
    {"Device", Without([](placement::MadeWith& container) { container.device_paths.clear(); })},
};
INSTANTIATE_TEST_SUITE_P(Parts, MadeWithTest, testing::ValuesIn(kLacking),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(RunOptionsTest, KnobsAndAmountsCanBeGivenToARunningContainer) {
  EXPECT_FALSE(IsForNewOnly({.is_scalar_resource = true, .quantity = 2}));
  EXPECT_FALSE(IsForNewOnly(
      {.oci_property = std::string(kCpusetCpus), .value = "0", .envs = {{"CPUS", "0"}}}));
}

TEST(RunOptionsTest, SharedCpusAreAddedToTheFirstResource) {
  const AllocationByResource allocations = {
      {"a", ResourceAllocation{.oci_property = std::string(kCpusetCpus), .value = "2-3"}},
      {"b", ResourceAllocation{.value = "2-3", .may_share = "0-7", .shares = "5-6"}}};
  EXPECT_EQ(MakeRunOptions(allocations).properties.at("CpusetCpus"), "2-3,5-6");
  EXPECT_EQ(MakeRunOptions(allocations, {3, 6}).properties.at("CpusetCpus"), "2,5");
}

TEST(RunOptionsTest, TakesTheSameValueTwiceForNoConflict) {
  const ResourceAllocation same{.oci_property = "CpusetCpus", .value = "0", .envs = {{"E", "1"}}};
  EXPECT_THAT(MakeRunOptions({{"a", same}, {"b", same}}).conflicts, IsEmpty());
}

TEST(RunOptionsTest, TranslatesEveryProperty) {
  const LinuxResources resources =
      ToLinuxResources({{"CpuPeriod", "100000"},
                        {"CpuQuota", "-1"},
                        {"CpuShares", "512"},
                        {"CpusetCpus", "0-3"},
                        {"CpusetMems", "1"},
                        {"MemoryLimitInBytes", "1024"},
                        {"MemorySwapLimitInBytes", "2048"},
                        {"HugepageLimits", R"([{"page_size": "2MB", "limit": 8}])"},
                        {"Unified", R"({"io.weight": "50"})"}});
  EXPECT_EQ(resources, (LinuxResources{.cpu_shares = 512,
                                       .cpu_quota_us = -1,
                                       .cpu_period_us = 100'000,
                                       .memory_limit_bytes = 1024,
                                       .memory_swap_limit_bytes = 2048,
                                       .cpuset_cpus = "0-3",
                                       .cpuset_mems = "1",
                                       .hugepage_limit_bytes = {{"2MB", 8}},
                                       .unified = {{"io.weight", "50"}}}));
  RunOptions options;
  options.properties = {{"OomScoreAdj", "-5"}};
  EXPECT_EQ(ToAdjustment(options).oom_score_adj, -5);
}

TEST(RunOptionsTest, PrintsTheProposalsJson) {
  RunOptions options;
  options.envs = {{"AFFINITY_NIC_ADDR_IPV6", "fdbd:dc05:3:155::20"}};
  options.annotations = {{"kubernetes.io/host-netns-path", "/var/run/netns/ns1"}};
  options.properties = {{"CpusetCpus", "42-51"}, {"CpusetMems", "1"}, {"CpuShares", "512"}};
  EXPECT_EQ(nlohmann::json::parse(ToJson(options)), nlohmann::json::parse(R"({
              "envs": {"AFFINITY_NIC_ADDR_IPV6": "fdbd:dc05:3:155::20"},
              "annotations": {"kubernetes.io/host-netns-path": "/var/run/netns/ns1"},
              "linux_container_resources":
                  {"cpusetCpus": "42-51", "cpusetMems": "1", "cpuShares": 512}})"));
  EXPECT_EQ(ToJson(RunOptions()), "{}");
}

}  // namespace
}  // namespace qrm::manager::run_options_test
