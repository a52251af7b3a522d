// Containers that are skipped: which they are, and what they still get.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/manager/admission/admitter_fixture.h"

namespace qrm::test::left_alone_test {
namespace {

using placement::Feature;
using placement::Permissions;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::StartsWith;

constexpr char kSkip[] = "katalyst.kubewharf.io/skip_qrm_admit";
constexpr char kQosLevel[] = "katalyst.kubewharf.io/qos_level";

class SkippedContainersTest : public AdmitterTest {
 protected:
  /// Options by which pods in namespace default may opt out.
  static placement::AdmissionOptions MayOptOut() {
    return {.permissions = placement::Permissions(
                {{.title = "a rule",
                  .namespaces = {"default"},
                  .allowed = {placement::Feature::kOptOut, placement::Feature::kReservedCpus}}})};
  }
  std::string MessageFor(const placement::ContainerDemand& demand,
                         placement::AdmissionOptions options) {
    const auto admitted = Admit(demand, std::move(options));
    EXPECT_TRUE(admitted.ok()) << admitted.status();
    return LastTrace().value("message", "");
  }
  bool AskedForNothing() const {
    return plugins_.allocated("cpu").requests == std::map<std::string, double>{{"cpu", 0}};
  }
};

TEST_F(SkippedContainersTest, AnnotationKeysWithoutEffectAreInTheDecisionAndAWarning) {
  placement::ContainerDemand demand = Demand();
  demand.pod.annotations.Edit()[kQosLevel] = "shared_cores";
  demand.pod.annotations.Edit()["katalyst.kubewharf.io/memory_enhancement"] =
      R"({"numa_binding": "true", "numa_bindign": "true"})";
  ASSERT_TRUE(Admit(demand).ok());
  EXPECT_THAT(LastTrace()["annotation_keys_without_effect"],
              ElementsAre("numa_bindign", "numa_binding at shared_cores"));
  ASSERT_EQ(events_.back().warnings.size(), 1U);
  EXPECT_EQ(events_.back().warnings[0].reason, "AnnotationIgnored");
  EXPECT_EQ(events_.back().warnings[0].message,
            "these keys of the pod's QoS annotations have no effect: numa_bindign, numa_binding at "
            "shared_cores; remove or correct them");
  EXPECT_THAT(events_.back().ignored_keys, ElementsAre("other", "numa_binding"));
}

TEST_F(SkippedContainersTest, SaysWhyForNamespacesAnnotationsClassesAndDaemonSets) {
  EXPECT_THAT(MessageFor(Demand(), {.skipped_namespaces = {"default"}}),
              StartsWith("namespace default is in skip-namespaces"));
  EXPECT_TRUE(AskedForNothing());
  placement::ContainerDemand annotated = Demand("annotated");
  annotated.pod.annotations.Edit()[kSkip] = "true";
  EXPECT_THAT(MessageFor(annotated, MayOptOut()),
              StartsWith("annotation katalyst.kubewharf.io/skip_qrm_admit is set"));
  EXPECT_TRUE(AskedForNothing());
  placement::ContainerDemand critical = Demand("critical");
  critical.priority_class = "system-node-critical";
  EXPECT_THAT(MessageFor(critical, MayOptOut()),
              StartsWith("priority class system-node-critical is in skip-priority-classes"));
  placement::ContainerDemand daemon = Demand("daemon");
  daemon.controller_kind = "DaemonSet";
  EXPECT_THAT(MessageFor(daemon, MayOptOut()), HasSubstr("skip-daemonset-pods is on"));
  EXPECT_TRUE(AskedForNothing());
}

TEST_F(SkippedContainersTest, NoPodIsSkippedByAForgedOwnerOrPriorityClass) {
  placement::ContainerDemand forged = Demand();
  forged.controller_kind = "DaemonSet";
  forged.priority_class = "system-node-critical";
  EXPECT_EQ(MessageFor(forged, {}), "");
  EXPECT_FALSE(AskedForNothing());
}

TEST_F(SkippedContainersTest, AnAnnotationThatIsNotAllowedIsRejected) {
  placement::ContainerDemand annotated = Demand();
  annotated.pod.annotations.Edit()[kSkip] = "true";
  EXPECT_EQ(Rejection(annotated),
            "cannot admit container main of pod default/web: the default rule of permissions does "
            "not allow opt-out in namespace default (annotation "
            "katalyst.kubewharf.io/skip_qrm_admit asks for it); remove it from the pod, or allow "
            "it in a rule of permissions");
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(SkippedContainersTest, SkippedContainerStaysOffExclusiveCpusOfOthers) {
  placement::ContainerDemand demand = Demand();
  demand.pod.role = "database";
  demand.pod.annotations = {{kSkip, "true"}, {kQosLevel, "dedicated_cores"}};
  demand.pod.labels = {{"a", "b"}};
  const auto admitted = Admit(demand, MayOptOut());
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_EQ(admitted->properties.at("CpusetCpus"), "0-1") << "what the plugin gives for nothing";
  const ContainerRequest& asked = plugins_.allocated("cpu");
  EXPECT_EQ(asked.pod_role, "");
  EXPECT_THAT(asked.annotations, IsEmpty());
  EXPECT_THAT(asked.labels, IsEmpty());
  EXPECT_THAT(*asked.requests, ElementsAre(Pair("cpu", 0)));
  EXPECT_THAT(LastTrace()["message"].get<std::string>(),
              HasSubstr("it only stays off reserved and exclusive resources"));
  ASSERT_NE(Record(demand), nullptr) << "it follows the pool when that shrinks";
  EXPECT_EQ(Record(demand)->skipped, "annotation katalyst.kubewharf.io/skip_qrm_admit is set");
}

TEST_F(SkippedContainersTest, StartsWhereAPluginRejectsEvenThat) {
  PluginScript refuses;
  refuses.hints = Status(StatusCode::kInternal, "broken");
  refuses.gives = Status(StatusCode::kInternal, "broken");
  plugins_.Set("cpu", refuses);
  const auto admitted = Admit(Demand(), {.skipped_namespaces = {"default"}});
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_THAT(admitted->properties, IsEmpty());
  EXPECT_EQ(LastTrace()["result"], "skipped");
  EXPECT_THAT(LastTrace()["message"].get<std::string>(), HasSubstr("broken"));
  EXPECT_EQ(Record(Demand()), nullptr);
}

TEST_F(SkippedContainersTest, PlacesSystemCoresAndDaemonSetsThatAreNotToBeSkipped) {
  placement::ContainerDemand daemon = Demand();
  daemon.controller_kind = "DaemonSet";
  placement::AdmissionOptions options = MayOptOut();
  options.skip_daemonset_pods = false;
  EXPECT_EQ(MessageFor(daemon, options), "");
  daemon = Demand("system");
  daemon.controller_kind = "DaemonSet";
  daemon.pod.annotations.Edit()[kQosLevel] = "system_cores";
  options = MayOptOut();
  options.skipped_namespaces = {"default"};
  EXPECT_EQ(MessageFor(daemon, options), "");
}

TEST_F(SkippedContainersTest, KeepsTheAllocationsOfAPodThatWasPlacedBefore) {
  placement::ContainerDemand first = Demand("web", "first");
  ASSERT_TRUE(Admit(first).ok());
  placement::ContainerDemand second = Demand("web", "second");
  second.controller_kind = "DaemonSet";
  ASSERT_TRUE(Admit(second, MayOptOut()).ok());
  EXPECT_EQ(snapshot_ = state_.Load(), snapshot_);
  EXPECT_EQ(snapshot_->FindPod(first.pod.uid)->meta, first.pod)
      << "its plugins still know its former allocation";
}

}  // namespace
}  // namespace qrm::test::left_alone_test
