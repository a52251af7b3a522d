// Pods as users and kubectl write them, and errors in some.
#include "tools/qrmctl/pod_file.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/proto/core/v1/pod.pb.h"

namespace qrm::manager::cli::pod_file_test {
namespace {

using ::k8s::io::api::core::v1::Pod;
using testing::HasSubstr;
using testing::SizeIs;

StatusOr<Pod> Read(const std::string& text) {
  std::istringstream stream(text);
  QRM_ASSIGN_OR_RETURN(const PodFile file, ReadPod(stream, "web.yaml"));
  return *file.pod;
}

std::string Problem(const std::string& text) {
  const auto pod = Read(text);
  EXPECT_EQ(pod.status().code(), StatusCode::kInvalidArgument) << text;
  return MessageOf(pod.status());
}

constexpr char kPod[] = R"(apiVersion: v1
kind: Pod
metadata:
  name: web
  namespace: shop
  uid: 7c9e6679
  labels: {app: web}
  annotations:
    katalyst.kubewharf.io/qos_level: "dedicated_cores"
  ownerReferences:
  - {kind: Other}
  - {kind: ReplicaSet, controller: true}
spec:
  priorityClassName: high
  priority: 9000
  runtimeClassName: kata
  initContainers:
  - name: setup
  - name: proxy
    restartPolicy: Always
  containers:
  - name: main
    image: busybox
    resources:
      requests: {cpu: 2, memory: 1Gi, example.com/nic: "1"}
      limits:
        memory: 2Gi
status:
  phase: Pending
)";

TEST(PodFileTest, ReadsWhatDecidesAboutAPod) {
  const auto pod = Read(kPod);
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->metadata().name(), "web");
  EXPECT_EQ(pod->metadata().namespace_(), "shop");
  EXPECT_EQ(pod->metadata().labels().at("app"), "web");
  EXPECT_EQ(pod->metadata().annotations().at("katalyst.kubewharf.io/qos_level"), "dedicated_cores");
  ASSERT_THAT(pod->metadata().owner_references(), SizeIs(2));
  EXPECT_FALSE(pod->metadata().owner_references(0).controller());
  EXPECT_TRUE(pod->metadata().owner_references(1).controller());
  EXPECT_EQ(pod->spec().priority_class_name(), "high");
  EXPECT_EQ(pod->spec().priority(), 9000);
  EXPECT_EQ(pod->spec().runtime_class_name(), "kata");
  ASSERT_THAT(pod->spec().init_containers(), SizeIs(2));
  EXPECT_EQ(pod->spec().init_containers(1).restart_policy(), "Always");
  ASSERT_THAT(pod->spec().containers(), SizeIs(1));
  const auto& resources = pod->spec().containers(0).resources();
  EXPECT_EQ(resources.requests().at("cpu").string(), "2");
  EXPECT_EQ(resources.requests().at("example.com/nic").string(), "1");
  EXPECT_EQ(resources.limits().at("memory").string(), "2Gi");
}

TEST(PodFileTest, ReadsJsonAsKubectlWritesIt) {
  const auto pod = Read(
      "{\n\t\"kind\": \"Pod\",\n\t\"metadata\": {\"name\": \"web\",\n"
      "\"annotations\": {\"a\": \"\\u003cb\\u003e \\/ \\\"c\\\"\"}},\n"
      "\"spec\": {\"containers\": [{\"name\": \"main\", \"resources\": "
      "{\"requests\": {\"cpu\": 0.5}}}]}}");
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(pod->metadata().namespace_(), "default");
  EXPECT_EQ(pod->metadata().annotations().at("a"), "<b> / \"c\"");
  EXPECT_EQ(pod->spec().containers(0).resources().requests().at("cpu").string(), "0.5");
}

TEST(PodFileTest, TakesThePodOutOfWhatMakesPods) {
  constexpr char kTemplate[] = R"(
metadata: {name: agent, namespace: ops, labels: {not: the-pod}}
spec:
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: main}]}
)";
  for (const auto& [kind, owner] :
       {std::pair("DaemonSet", "DaemonSet"), std::pair("Deployment", "ReplicaSet"),
        std::pair("StatefulSet", "StatefulSet"), std::pair("Job", "Job")}) {
    const auto pod = Read(std::string("kind: ") + kind + kTemplate);
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(pod->metadata().name(), "agent");
    EXPECT_EQ(pod->metadata().namespace_(), "ops");
    EXPECT_EQ(pod->metadata().owner_references(0).kind(), owner);
    EXPECT_EQ(pod->metadata().labels().at("app"), "agent");
    EXPECT_FALSE(pod->metadata().labels().contains("not"));
  }
  const auto job = Read(
      "kind: CronJob\nmetadata: {name: nightly}\nspec: {jobTemplate: {spec: {template: {spec: "
      "{containers: [{name: main}]}}}}}\n");
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_THAT(job->spec().containers(), SizeIs(1));
}

TEST(PodFileTest, NamesLineFieldValueAndRemedyOfWhatIsWrong) {
  EXPECT_EQ(Problem("kind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - name: main\n"
                    "    resources:\n      requests:\n        cpu: two\n"),
            "cannot read web.yaml:8: spec.containers[0].resources.requests.cpu is 'two', which is "
            "not a quantity; write one such as 2, 500m or 1Gi");
  EXPECT_EQ(Problem("kind: Service\n"),
            "cannot read web.yaml:1: kind is 'Service', which has no pod; give a Pod, or a "
            "Deployment, DaemonSet, StatefulSet, ReplicaSet, Job or CronJob");
  EXPECT_EQ(Problem("metadata: {}\n"), "cannot read web.yaml:1: kind is missing; add it");
  EXPECT_EQ(Problem("kind: Pod\nmetadata:\n  namespace: shop\n"),
            "cannot read web.yaml:3: metadata.name is missing; add it");
  EXPECT_EQ(Problem("kind: Pod\nmetadata: {name: web}\nspec:\n  containers: main\n"),
            "cannot read web.yaml:4: spec.containers is 'main', which is not a list; write a list");
  EXPECT_EQ(Problem("kind: Pod\nmetadata: {name: web}\nspec: {}\n"),
            "cannot read web.yaml:3: spec.containers is missing; add it");
  EXPECT_EQ(
      Problem("kind: Pod\nmetadata:\n  name: web\n  annotations:\n    on: true\n"),
      "cannot read web.yaml:5: metadata.annotations.on is 'true', which is not a text; put it "
      "in quotes");
}

TEST(PodFileTest, RejectsAPriorityThatIsNotANumber) {
  EXPECT_EQ(
      Problem("kind: Pod\nmetadata: {name: a}\nspec:\n  containers: [{name: c}]\n"
              "  priority: high\n"),
      "cannot read web.yaml:5: spec.priority is 'high', which is not a priority; write a whole "
      "number such as 9000");
}

TEST(PodFileTest, RejectsWhatIsNotOneDocument) {
  EXPECT_THAT(Problem(""), HasSubstr("web.yaml: it has 0 documents; give one pod"));
  EXPECT_THAT(Problem(std::string(kPod) + "---\n" + kPod), HasSubstr("it has 2 documents"));
  EXPECT_TRUE(Read(std::string("---\n") + kPod + "---\n").ok());
  EXPECT_THAT(Problem("kind: Pod\nmetadata: [1\n"), HasSubstr("cannot read web.yaml:3: "));
  EXPECT_THAT(Problem("[]"), HasSubstr("the document is a list, which is not a mapping"));
  EXPECT_THAT(Problem("kind: \xff\n"), HasSubstr("it is not UTF-8 text; save it as UTF-8"));
}

TEST(PodFileTest, SurvivesHostileText) {
  EXPECT_THAT(Problem(std::string(2 << 20, 'x')), HasSubstr("more than Kubernetes takes"));
  EXPECT_THAT(Problem(std::string(1 << 18, '[')), HasSubstr("web.yaml"));
  EXPECT_THAT(Problem(std::string(1 << 18, '{')), HasSubstr("web.yaml"));
  EXPECT_THAT(Problem("&a [*a]"), HasSubstr("web.yaml"));
  EXPECT_THAT(Problem("kind: Pod\nmetadata: &m {name: *m}\n"), HasSubstr("web.yaml"));
  for (const char* text :
       {"3", "kind: [Pod]", "kind: Pod\nmetadata: 3", "kind: Pod\nmetadata: {name: {}}",
        "kind: Pod\nmetadata: {name: w}\nspec: {containers: [3, [], null]}",
        "kind: Pod\nmetadata: {name: w}\nspec: {containers: [{name: m, resources: []}]}",
        "kind: Pod\nmetadata: {name: w}\nspec: {containers: [{name: m, resources: {limits: 3}}]}",
        "kind: Pod\nmetadata: {name: w, labels: {? [a] : b}, ownerReferences: {}}",
        "kind: Deployment\nmetadata: {name: w}\nspec: {template: 7}", "\x01", "%YAML 9", "*x"}) {
    Problem(text);
  }
}

}  // namespace
}  // namespace qrm::manager::cli::pod_file_test
