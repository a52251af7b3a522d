// The values that kubelet would give a container.
#include "tools/qrmctl/cgroup_values.h"

#include <string>

#include <gtest/gtest.h>

#include "api/proto/runtime/v1/api.pb.h"

namespace qrm::manager::cli::cgroup_values_test {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

struct Row {
  std::string name;
  ContainerAmounts amounts;
  std::string qos_class;
  CgroupValues values;
};

class KubeletValuesTest : public testing::TestWithParam<Row> {};

TEST_P(KubeletValuesTest, AreThoseOfKubelet) {
  const CgroupValues values = KubeletValues(GetParam().amounts, GetParam().qos_class, 100 * kGiB);
  EXPECT_EQ(ToCri(values).cpu_period(), kCpuPeriodUs);
  EXPECT_EQ(values.cpu_shares, GetParam().values.cpu_shares);
  EXPECT_EQ(values.cpu_quota_us, GetParam().values.cpu_quota_us);
  EXPECT_EQ(values.memory_limit_bytes, GetParam().values.memory_limit_bytes);
  EXPECT_EQ(values.oom_score_adj, GetParam().values.oom_score_adj);
}

INSTANTIATE_TEST_SUITE_P(
    Rows, KubeletValuesTest,
    testing::Values(
        Row{"NothingAsked", {}, "BestEffort", {2, 0, 0, 1000}},
        Row{"Guaranteed",
            {.milli_cpus = 1500,
             .milli_cpu_limit = 1500,
             .memory_bytes = kGiB,
             .memory_limit_bytes = kGiB},
            "Guaranteed",
            {1536, 150'000, kGiB, -997}},
        Row{"TenthOfTheMemory",
            {.milli_cpus = 100, .memory_bytes = 10 * kGiB},
            "Burstable",
            {102, 0, 0, 900}},
        Row{"NoMemoryInABurstablePod", {.milli_cpus = 1}, "Burstable", {2, 0, 0, 999}},
        Row{"AllOfTheMemory", {.memory_bytes = 100 * kGiB}, "Burstable", {2, 0, 0, 3}},
        Row{"TinyLimit", {.milli_cpus = 1, .milli_cpu_limit = 1}, "Burstable", {2, 1000, 0, 999}},
        Row{"MoreThanTheKernelTakes", {.milli_cpus = 300'000}, "Burstable", {262'144, 0, 0, 999}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace qrm::manager::cli::cgroup_values_test
