// A manifest becomes the demands with which an admission of its pod would begin.
#include "manager/demand/new_pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/proto/core/v1/pod.pb.h"

namespace qrm::manager::new_pod_test {
namespace {

using ::k8s::io::api::core::v1::Container;
using ::k8s::io::api::core::v1::Pod;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::SizeIs;

void Request(Container& container, const std::string& resource, const std::string& amount) {
  (*container.mutable_resources()->mutable_requests())[resource].set_string(amount);
}

/// Containers setup (init), proxy (init that stays), main and logger.
Pod SamplePod() {
  Pod pod;
  pod.mutable_metadata()->set_name("web");
  pod.mutable_metadata()->set_uid("uid-of-another");
  (*pod.mutable_metadata()->mutable_labels())["katalyst.kubewharf.io/pod_role"] = "online";
  (*pod.mutable_metadata()->mutable_annotations())["a"] = "b";
  pod.mutable_spec()->set_priority_class_name("high");
  pod.mutable_spec()->add_init_containers()->set_name("setup");
  Container& proxy = *pod.mutable_spec()->add_init_containers();
  proxy.set_name("proxy");
  proxy.set_restart_policy("Always");
  Container& main = *pod.mutable_spec()->add_containers();
  main.set_name("main");
  Request(main, "cpu", "1500m");
  Request(main, "example.com/nic", "1");
  pod.mutable_spec()->add_containers()->set_name("logger");
  return pod;
}

StatusOr<NewPod> Read(const Pod& pod, SpecsFrom specs = SpecsFrom::kKubelet) {
  return ReadNewPod(pod.SerializeAsString(), "dry-run-1", placement::PodKeys(), specs);
}

std::string Problem(const std::string& bytes) {
  const auto pod = ReadNewPod(bytes, "dry-run-1", placement::PodKeys(), SpecsFrom::kKubelet);
  EXPECT_EQ(pod.status().code(), StatusCode::kInvalidArgument);
  return MessageOf(pod.status());
}

TEST(NewPodTest, IsOneAdmissionOfAllContainersWhereSpecsAreKnown) {
  const auto pod = Read(SamplePod());
  ASSERT_TRUE(pod.ok()) << pod.status();
  ASSERT_THAT(pod->admissions, SizeIs(1));
  const placement::ContainerDemand& first = pod->admissions[0];
  EXPECT_EQ(first.container, "setup");
  EXPECT_EQ(first.type, ContainerType::kInit);
  EXPECT_EQ(first.place, 0u);
  EXPECT_EQ(first.pod.uid, "dry-run-1");
  EXPECT_EQ(first.pod.pod_namespace, "default");
  EXPECT_EQ(first.pod.role, "online");
  EXPECT_EQ(first.pod.qos_class, "Burstable");
  EXPECT_EQ(first.priority_class, "high");
  EXPECT_EQ(first.source, "manifest");
  ASSERT_THAT(first.others, SizeIs(3));
  EXPECT_EQ(first.others[0].type, ContainerType::kSidecar);
  EXPECT_EQ(first.others[1].type, ContainerType::kMain);
  EXPECT_THAT(*first.others[1].requests, ElementsAre(Pair("cpu", 1.5), Pair("example.com/nic", 1)));
  EXPECT_EQ(first.others[2].type, ContainerType::kSidecar);
}

TEST(NewPodTest, IsOneAdmissionPerContainerOfWhatCgroupsShowWhereSpecsAreNotKnown) {
  const auto pod = Read(SamplePod(), SpecsFrom::kCgroups);
  ASSERT_TRUE(pod.ok()) << pod.status();
  ASSERT_THAT(pod->admissions, SizeIs(4));
  const placement::ContainerDemand& main = pod->admissions[2];
  EXPECT_EQ(main.container, "main");
  EXPECT_THAT(*main.requests, ElementsAre(Pair("cpu", 1.5)));
  EXPECT_EQ(main.pod.qos_class, "Burstable");
  EXPECT_EQ(main.priority_class, "") << "only the spec has it";
  EXPECT_THAT(main.others, SizeIs(0));
  EXPECT_EQ(pod->admissions[0].type, ContainerType::kMain) << "as the estimate takes it";
  EXPECT_THAT(pod->unseen, ElementsAre("example.com/nic"));
}

TEST(NewPodTest, RejectsWhatIsNotAPod) {
  EXPECT_THAT(Problem("\xff\xff"), HasSubstr("its 2 bytes are not a serialized v1.Pod"));
  EXPECT_THAT(Problem(""), HasSubstr("it has no metadata.name; add it"));
  Pod pod = SamplePod();
  pod.mutable_spec()->clear_containers();
  EXPECT_THAT(Problem(pod.SerializeAsString()), HasSubstr("it has no spec.containers"));

  pod = SamplePod();
  *pod.mutable_spec()->add_containers() = pod.spec().containers(0);
  EXPECT_THAT(Problem(pod.SerializeAsString()),
              HasSubstr("container main: its name is used twice"));
  Request(*pod.mutable_spec()->mutable_containers(2), "cpu", "two");
  pod.mutable_spec()->mutable_containers(2)->set_name("third");
  EXPECT_THAT(Problem(pod.SerializeAsString()), HasSubstr("container third: "));
}

TEST(NewPodTest, RejectsPodsWhoseAnswerWouldFillTheMemory) {
  const auto add = [](Pod& pod, int count) {
    for (int i = 0; i < count; ++i) {
      pod.mutable_spec()->add_containers()->set_name("c" + std::to_string(i));
    }
  };
  Pod pod = SamplePod();
  (*pod.mutable_metadata()->mutable_annotations())["big"] = std::string(2 << 20, 'x');
  EXPECT_THAT(Problem(pod.SerializeAsString()), HasSubstr("it is too large for the API server"));

  (*pod.mutable_metadata()->mutable_annotations())["big"] = std::string(1 << 20, 'x');
  add(pod, 100);
  EXPECT_THAT(Problem(pod.SerializeAsString()), HasSubstr("with 104 containers: it is too large"));

  pod = SamplePod();
  add(pod, 247);
  EXPECT_THAT(Problem(pod.SerializeAsString()), HasSubstr("use at most 250 containers"));

  pod = SamplePod();
  pod.mutable_spec()->mutable_containers(1)->set_name(std::string(64, 'x'));
  EXPECT_THAT(Problem(pod.SerializeAsString()), HasSubstr("has 64 bytes"));
}

}  // namespace
}  // namespace qrm::manager::new_pod_test
