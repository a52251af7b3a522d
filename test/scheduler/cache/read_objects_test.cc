#include "scheduler/cache/read_objects.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace qrm::scheduler::read_objects_test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Pod Read(const std::string& text) {
  StatusOr<Pod> pod = ReadPod(json::parse(text));
  EXPECT_TRUE(pod.ok()) << pod.status();
  return pod.value_or(Pod());
}

std::string ReadError(const std::string& text) {
  return MessageOf(ReadPod(json::parse(text)).status());
}

TEST(ReadPodTest, ReadsContainersInTheOrderInWhichTheyStart) {
  const Pod pod = Read(R"({"metadata": {"uid": "u", "name": "web", "namespace": "ns"},
    "spec": {"nodeName": "n1", "runtimeClassName": "kata",
             "initContainers": [{"name": "i", "resources": {"requests": {"cpu": "500m"}}},
                                {"name": "s", "restartPolicy": "Always"}],
             "containers": [{"name": "c", "resources": {"limits": {"memory": "1Gi", "cpu": 2}}}]},
    "status": {"phase": "Running"}})");
  EXPECT_EQ(pod.node, "n1");
  EXPECT_EQ(pod.runtime_class, "kata");
  EXPECT_EQ(pod.containers,
            (std::vector<PodContainer>{
                {.name = "i", .kind = PodContainer::Kind::kInit, .requests = {{"cpu", 0.5}}},
                {.name = "s", .kind = PodContainer::Kind::kSidecar, .requests = {}},
                {.name = "c",
                 .requests = {{"cpu", 2}, {"memory", 1 << 30}},
                 .limits = {{"cpu", 2}, {"memory", 1 << 30}}}}));
  EXPECT_FALSE(pod.finished);
}

TEST(ReadPodTest, ReportsThePriorityOfTheSpecAndNoOther) {
  const char* const forged = R"({"metadata": {"uid": "u", "name": "p",
    "annotations": {"qrm.io/pod-priority": "2000001000", "other": "kept"}}, "spec": {)";
  EXPECT_EQ(Read(std::string(forged) + R"("priority": -10}})").annotations,
            (StringMap{{"qrm.io/pod-priority", "-10"}, {"other", "kept"}}));
  EXPECT_EQ(Read(std::string(forged) + "}}").annotations, (StringMap{{"other", "kept"}}));
}

TEST(ReadPodTest, AContainerThatShrinksCountsWhatItStillHas) {
  const std::string pod = R"({"metadata": {"uid": "u", "name": "p"}, "spec": {"containers":
    [{"name": "c", "resources": {"requests": {"cpu": 2, "memory": "3Gi"},
                                 "limits": {"cpu": 2, "memory": "3Gi"}}}]}, "status": )";
  const auto requests = [&](const std::string& status) {
    const Pod read = Read(pod + status + "}");
    EXPECT_EQ(read.qos_class, "Guaranteed") << "of its specification";
    return read.containers.front().requests;
  };
  const double gibi = 1 << 30;
  EXPECT_EQ(requests(R"({"containerStatuses": [{"name": "c",
      "allocatedResources": {"cpu": 2, "memory": "3Gi"},
      "resources": {"requests": {"cpu": 4, "memory": "2Gi"}, "limits": {"cpu": 4}}}]})"),
            (Amounts{{"cpu", 4}, {"memory", 3 * gibi}}));
  EXPECT_EQ(requests(R"({"containerStatuses": [{"name": "c",
      "allocatedResources": {"cpu": 3}}]})"),
            (Amounts{{"cpu", 3}, {"memory", 3 * gibi}}));
  EXPECT_EQ(requests(R"({"containerStatuses": [{"name": "other",
      "allocatedResources": {"cpu": 9}}]})"),
            (Amounts{{"cpu", 2}, {"memory", 3 * gibi}}));
}

TEST(ReadPodTest, ReadsWhatPreemptionDecidesBy) {
  const Pod pod = Read(R"({"metadata": {"uid": "u", "name": "p",
      "deletionTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {"priority": 7, "preemptionPolicy": "Never"}, "status": {"nominatedNodeName": "n1"}})");
  EXPECT_EQ(pod.priority, 7);
  EXPECT_FALSE(pod.preempts);
  EXPECT_TRUE(pod.ending);
  EXPECT_EQ(pod.nominated, "n1");
}

struct QosCase {
  std::string name;
  std::string containers;
  std::string want;
};

class QosClassTest : public testing::TestWithParam<QosCase> {};

TEST_P(QosClassTest, FollowsRequestsAndLimits) {
  const Pod pod = Read(R"({"metadata": {"uid": "u", "name": "p"}, "spec": {"containers": )" +
                       GetParam().containers + "}}");
  EXPECT_EQ(pod.qos_class, GetParam().want);
}

const QosCase kQosCases[] = {
    {"NothingAsked", R"([{"name": "c"}])", "BestEffort"},
    {"OnlyOthersAsked", R"([{"name": "c", "resources": {"limits": {"x/nic": 1}}}])", "BestEffort"},
    {"LimitsOnly", R"([{"name": "c", "resources": {"limits": {"cpu": 1, "memory": 1}}}])",
     "Guaranteed"},
    {"RequestBelowLimit",
     R"([{"name": "c", "resources": {"requests": {"cpu": 1}, "limits": {"cpu": 2, "memory": 1}}}])",
     "Burstable"},
    {"OneWithoutLimits",
     R"([{"name": "c", "resources": {"limits": {"cpu": 1, "memory": 1}}}, {"name": "d"}])",
     "Burstable"},
};
INSTANTIATE_TEST_SUITE_P(Containers, QosClassTest, testing::ValuesIn(kQosCases),
                         [](const auto& param_info) { return param_info.param.name; });

TEST(ReadPodTest, APodThatSucceededHasFinished) {
  EXPECT_TRUE(Read(R"({"metadata": {"uid": "u", "name": "p"}, "status": {"phase": "Succeeded"}})")
                  .finished);
}

TEST(ReadPodTest, NamesThePodAndTheValueThatIsWrong) {
  EXPECT_THAT(ReadError(R"({"metadata": {"uid": "u", "name": "p", "namespace": "ns"},
      "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "many"}}}]}})"),
              HasSubstr("cannot read pod ns/p: container c: cpu: cannot read quantity 'many'"));
  EXPECT_THAT(ReadError(R"({"metadata": {"name": "p"}})"), HasSubstr("metadata.uid is missing"));
  EXPECT_THAT(ReadError(R"({"metadata": {"uid": 7}})"), HasSubstr("uid is 7, which is not a text"));
  EXPECT_THAT(ReadError(R"([])"), HasSubstr("not a mapping"));
}

TEST(ReadPodTest, QuotesEveryNameInAnError) {
  const std::string meta = R"({"metadata": {"namespace": "ns\n", "name": "n\u007f", "uid": )";
  EXPECT_THAT(ReadError(meta + R"("", "labels": {}}})"),
              HasSubstr("cannot read pod ns\\n/n\\x7f: metadata.uid is missing"));
  EXPECT_THAT(ReadError(meta + R"("u", "labels": {"k\u202e": 1}}})"),
              HasSubstr("labels k\\u202e is 1"));
  EXPECT_THAT(ReadError(meta + R"("u"}, "spec": {"containers": [
                  {"name": "c\t", "resources": {"requests": {"cpu\u007f": "x"}}}]}})"),
              HasSubstr("container c\\t: cpu\\x7f: "));
  EXPECT_THAT(
      MessageOf(
          ReadNode(json::parse(R"({"metadata": {"name": "n\u007f", "labels": 1}})")).status()),
      HasSubstr("cannot read node n\\x7f: "));
}

TEST(ReadPodTest, RejectsContainersThatAreNoList) {
  EXPECT_THAT(
      ReadError(R"({"metadata": {"uid": "u", "name": "p"}, "spec": {"containers": {"a": 1}}})"),
      HasSubstr("not a mapping"));
}

TEST(ReadNodeTest, ReadsNumbersAndTextsAsAmounts) {
  const StatusOr<Node> node = ReadNode(json::parse(
      R"({"metadata": {"name": "n1", "annotations": {"a": "b"}},
          "status": {"allocatable": {"cpu": "3900m", "pods": 110}}})"));
  ASSERT_TRUE(node.ok()) << node.status();
  EXPECT_EQ(node->allocatable, (Amounts{{"cpu", 3.9}, {"pods", 110}}));
  EXPECT_EQ(node->annotations, (StringMap{{"a", "b"}}));
}

}  // namespace
}  // namespace qrm::scheduler::read_objects_test
