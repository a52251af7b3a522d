#include "manager/admission/pod_source.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager {
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

ContainerDemand Find(const RuntimePod& pod, const RuntimeContainer& container) {
  CgroupEstimate source;
  return *source.Find(pod, container, {});
}

TEST(CgroupEstimateTest, GivesBackEveryCpuRequestFromThreeMilliCpusTo256Cpus) {
  for (uint64_t milli = 3; milli <= 256'000; ++milli) {
    ASSERT_EQ(MilliCpusFromShares(SharesOfKubelet(milli)), milli);
  }
}

TEST(CgroupEstimateTest, TakesTheLeastSharesForNoRequest) {
  RuntimeContainer container = Container();
  container.resources = {.cpu_shares = 2};
  EXPECT_TRUE(Find(Pod(), container).requests.empty());
}

TEST(CgroupEstimateTest, RequestsTheMemoryLimit) {
  const ContainerDemand demand = Find(Pod(), Container());
  EXPECT_EQ(demand.requests.at("cpu"), 1.5);
  EXPECT_EQ(demand.requests.at("memory"), 1 << 30);
  EXPECT_EQ(demand.source, "estimate");
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

TEST(CgroupEstimateTest, TakesContainersBesideTheNamedMainOneForSidecars) {
  RuntimePod pod = Pod();
  EXPECT_EQ(Find(pod, Container()).type, ContainerType::kMain);
  pod.annotations = {{"kubernetes.io/main-container-name", "other"}};
  EXPECT_EQ(Find(pod, Container()).type, ContainerType::kSidecar);
}

TEST(CgroupEstimateTest, FindsTheNameInKubeletsLabelWhenTheRuntimeLeavesItOut) {
  RuntimeContainer container = Container();
  container.name.clear();
  container.labels = {{"io.kubernetes.container.name", "labelled"}};
  EXPECT_EQ(Find(Pod(), container).container, "labelled");
}

TEST(CgroupEstimateTest, RefusesAContainerOfNoPod) {
  RuntimePod pod = Pod();
  pod.uid.clear();
  CgroupEstimate source;
  const Status status = source.Find(pod, Container(), {}).status();
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
}  // namespace qrm::manager
