#include "manager/demand/demand_source.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager::demand_source_test {
namespace {

using testing::HasSubstr;

uint64_t SharesOfKubelet(uint64_t milli_cpus) {
  return std::clamp<uint64_t>(milli_cpus * 1024 / 1000, 2, 262144);
}

RuntimePod Pod() {
  return {.id = "sandbox", .uid = "uid", .pod_namespace = "default", .name = "web"};
}

RuntimeContainer Container() {
  RuntimeContainer container;
  container.id = "id";
  container.name = "main";
  container.resources.cpu_shares = SharesOfKubelet(1500);
  container.resources.memory_limit_bytes = 1 << 30;
  return container;
}

placement::ContainerDemand Find(const RuntimePod& pod, const RuntimeContainer& container) {
  const CgroupEstimate source;
  return *source.Estimate(pod, container);
}

TEST(CgroupEstimateTest, GivesBackEveryCpuRequestFromThreeMilliCpusTo256Cpus) {
  for (uint64_t milli = 3; milli <= 256'000; ++milli) {
    ASSERT_EQ(MilliCpusFromShares(SharesOfKubelet(milli)), milli);
  }
}

TEST(CgroupEstimateTest, GivesBackTheSharesOfEveryCpuRequest) {
  for (uint64_t milli = 0; milli <= 256'000; ++milli) {
    const uint64_t shares = SharesOfKubelet(milli);
    ASSERT_EQ(SharesOfKubelet(MilliCpusFromShares(shares)), shares);
  }
}

TEST(CgroupEstimateTest, IsAtMost26MilliCpusAboveTheRequestBehindAWeight) {
  for (uint64_t milli = 29; milli <= 256'000; ++milli) {
    const uint64_t weight = 1 + (SharesOfKubelet(milli) - 2) * 9999 / 262142;
    const uint64_t estimate = MilliCpusFromWeight(weight);
    ASSERT_GE(estimate, milli);
    ASSERT_LE(estimate - milli, 26u);
  }
  EXPECT_EQ(MilliCpusFromWeight(1), 0u);
}

TEST(CgroupEstimateTest, ReadsTheWeightOnlyWhereThereAreNoShares) {
  RuntimeContainer container = Container();
  container.resources.unified = {{"cpu.weight", "10000"}};
  EXPECT_EQ(Find(Pod(), container).requests.at("cpu"), 1.5);
  container.resources.cpu_shares.reset();
  EXPECT_EQ(Find(Pod(), container).requests.at("cpu"), 256);
}

TEST(CgroupEstimateTest, EstimatesMemoryWithinOnePointOfTheOomScore) {
  for (const uint64_t capacity : {uint64_t{16} << 30, (uint64_t{256} << 30) + 12345}) {
    for (uint64_t request = capacity / 400; request < capacity / 1000 * 995; request += 7'654'321) {
      const auto score = static_cast<int64_t>(1000 - 1000 * request / capacity);
      const uint64_t estimate = MemoryFromOomScore(score, capacity, 0);
      ASSERT_LE(estimate, request);
      ASSERT_LE(request - estimate, capacity / 1000 + 1);
      ASSERT_EQ(MemoryFromOomScore(score, capacity, request), request) << "limit and request";
    }
  }
}

TEST(CgroupEstimateTest, TakesTheUpperEndOfTheOomScoreForNoMemoryRequest) {
  constexpr uint64_t kCapacity = 1'000'000;
  EXPECT_EQ(MemoryFromOomScore(999, kCapacity, 0), 0u);
  EXPECT_EQ(MemoryFromOomScore(999, kCapacity, 1500), 1500u) << "kubelet's default is the limit";
  EXPECT_EQ(MemoryFromOomScore(999, kCapacity, 500'000), 0u);
  EXPECT_EQ(MemoryFromOomScore(500, kCapacity, 900'000), 500'000u);
  EXPECT_EQ(MemoryFromOomScore(3, kCapacity, 0), 997'000u);
}

TEST(CgroupEstimateTest, EstimatesMemoryOfBurstableContainersOnly) {
  CgroupEstimate source({}, uint64_t{16} << 30);
  RuntimePod pod = Pod();
  pod.cgroup_parent = "/kubepods/burstable/pod1";
  RuntimeContainer container = Container();
  container.oom_score_adj = 500;
  container.resources.memory_limit_bytes = int64_t{12} << 30;
  EXPECT_EQ(source.Estimate(pod, container)->requests.at("memory"), uint64_t{8} << 30);
  container.oom_score_adj = -997;  // a critical pod's
  EXPECT_EQ(source.Estimate(pod, container)->requests.at("memory"), uint64_t{12} << 30);
  container.resources.unified = {{"memory.min", "4096"}};
  EXPECT_EQ(source.Estimate(pod, container)->requests.at("memory"), 4096);
  container.resources.unified = {};
  container.oom_score_adj = 500;
  pod.cgroup_parent = "/kubepods/pod1";
  EXPECT_EQ(source.Estimate(pod, container)->requests.at("memory"), uint64_t{12} << 30);
}

TEST(CgroupEstimateTest, TakesTheLeastSharesForNoRequest) {
  RuntimeContainer container = Container();
  container.resources = {.cpu_shares = 2};
  EXPECT_TRUE(Find(Pod(), container).requests.empty());
}

TEST(CgroupEstimateTest, RequestsTheMemoryLimit) {
  const placement::ContainerDemand demand = Find(Pod(), Container());
  EXPECT_EQ(demand.requests.at("cpu"), 1.5);
  EXPECT_EQ(demand.requests.at("memory"), 1 << 30);
  EXPECT_EQ(demand.source, "estimate");
}

TEST(CgroupEstimateTest, TakesTheQuotaForTheCpuLimit) {
  RuntimeContainer container = Container();
  EXPECT_TRUE(Find(Pod(), container).limits.empty());
  container.resources.cpu_quota_us = 250'000;
  container.resources.cpu_period_us = 100'000;
  EXPECT_EQ(Find(Pod(), container).limits.at("cpu"), 2.5);
  container.resources.cpu_quota_us = -1;
  EXPECT_TRUE(Find(Pod(), container).limits.empty());
}

TEST(CgroupEstimateTest, ReadsRoleAndTypeFromLabelFirstThenAnnotations) {
  RuntimePod pod = Pod();
  pod.annotations = {{"kubernetes.io/pod-role", "from-annotation"},
                     {"kubernetes.io/resource-type", "socket"}};
  EXPECT_EQ(Find(pod, Container()).pod.role, "from-annotation");
  EXPECT_EQ(Find(pod, Container()).pod.type, "socket");
  pod.labels = {{"katalyst.kubewharf.io/pod_role", "from-label"}};
  pod.annotations["katalyst.kubewharf.io/pod_type"] = "core";
  EXPECT_EQ(Find(pod, Container()).pod.role, "from-label");
  EXPECT_EQ(Find(pod, Container()).pod.type, "core");
}

TEST(CgroupEstimateTest, TakesNoPriorityFromAPodsOwnAnnotation) {
  RuntimePod pod = Pod();
  pod.annotations = {{"qrm.io/pod-priority", "2000001000"}, {"other", "kept"}};
  EXPECT_EQ(Find(pod, Container()).pod.annotations, (StringMap{{"other", "kept"}}));
}

TEST(CgroupEstimateTest, TakesContainersBesideTheNamedMainOneForSidecars) {
  RuntimePod pod = Pod();
  EXPECT_EQ(Find(pod, Container()).type, ContainerType::kMain);
  pod.annotations = {{"kubernetes.io/main-container-name", "other"}};
  EXPECT_EQ(Find(pod, Container()).type, ContainerType::kSidecar);
}

TEST(CgroupEstimateTest, FindsTheNameInKubeletsLabelWhenTheRuntimeLeavesItOut) {
  RuntimeContainer container = Container();
  container.name = {};
  container.labels = {{"io.kubernetes.container.name", "labelled"}};
  EXPECT_EQ(Find(Pod(), container).container, "labelled");
}

TEST(CgroupEstimateTest, RejectsAContainerOfNoPod) {
  RuntimePod pod = Pod();
  pod.uid = {};
  const CgroupEstimate source;
  const Status status = source.Estimate(pod, Container()).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(MessageOf(status), HasSubstr("no pod UID"));
}

struct QosCase {
  std::string name;
  std::string cgroup_parent;
  int64_t oom_score_adj;
  LinuxResources resources;
  std::string want;
};

class QosClassTest : public testing::TestWithParam<QosCase> {};

TEST_P(QosClassTest, IsInferred) {
  RuntimePod pod = Pod();
  pod.cgroup_parent = GetParam().cgroup_parent;
  RuntimeContainer container = Container();
  container.oom_score_adj = GetParam().oom_score_adj;
  container.resources = GetParam().resources;
  EXPECT_EQ(QosClassOf(pod, container), GetParam().want);
}

const LinuxResources kLimited = {.cpu_shares = 2048,
                                 .cpu_quota_us = 200'000,
                                 .cpu_period_us = 100'000,
                                 .memory_limit_bytes = 1 << 30};
const QosCase kQosCases[] = {
    {"GuaranteedBySlice", "kubepods-pod1.slice", 0, {}, "Guaranteed"},
    {"BurstableByPath", "/kubepods/burstable/pod1", 0, {}, "Burstable"},
    {"BestEffortBySlice", "kubepods-besteffort-pod1.slice", 0, {}, "BestEffort"},
    {"GuaranteedByScore", "/own", -997, {}, "Guaranteed"},
    {"GuaranteedByOldScore", "/own", -998, {}, "Guaranteed"},
    {"BestEffortByScore", "/own", 1000, {}, "BestEffort"},
    {"GuaranteedByLimits", "", 0, kLimited, "Guaranteed"},
    {"BurstableByRequest", "", 0, {.cpu_shares = 2048}, "Burstable"},
    {"BestEffortWithoutRequests", "", 0, {}, "BestEffort"},
};
INSTANTIATE_TEST_SUITE_P(Classes, QosClassTest, testing::ValuesIn(kQosCases),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace qrm::manager::demand_source_test
