#include "manager/admission/class_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "manager/admission/dry_run.h"
#include "manager/classes/class_book.h"
#include "test/manager/admission/admitter_fixture.h"
#include "test/support/fake_class_provider.h"
#include "test/support/is_ok.h"

namespace qrm::manager::class_step_test {
namespace {

using test::AdmitterTest;
using test::Demand;
using test::FakeClassProvider;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

constexpr char kKey[] = "blockio.resources.beta.kubernetes.io/pod";

placement::ContainerDemand Asking(const std::string& name, const std::string& pod = "web") {
  placement::ContainerDemand demand = Demand(pod);
  demand.pod.annotations.Edit()[kKey] = name;
  return demand;
}

// The node of AdmitterTest with the types blockio, slow for all, fast for two; and oom, immutable.
class ClassStepTest : public AdmitterTest {
 protected:
  ClassStepTest() {
    ClassesOptions options;
    ClassTypeRules& rules = options.types["blockio"];
    rules.classes["slow"] = {.namespaces = {"*"}};
    rules.classes["fast"] = {.capacity = 2, .namespaces = {"*"}};
    ClassBook::Providers providers;
    providers.push_back(std::make_unique<FakeClassProvider>(
        sdk::ClassType{.name = "blockio", .classes = {{.name = "fast"}, {.name = "slow"}}}));
    options.types["oom"].classes["first"] = {.namespaces = {"*"}};
    providers.push_back(std::make_unique<FakeClassProvider>(
        sdk::ClassType{.name = "oom", .is_mutable = false, .classes = {{.name = "first"}}}));
    book_ = std::make_unique<ClassBook>(std::move(options), std::move(providers));
  }

  StatusOr<RunOptions> AdmitWithClasses(const placement::ContainerDemand& demand,
                                        placement::AdmissionOptions options = {},
                                        Admitter::Moment moment = Admitter::Moment::kAtCreation) {
    Admitter admitter({.state = state_,
                       .decisions = decisions_.log,
                       .plugins = plugins_,
                       .releaser = releaser_,
                       .machine = machine_,
                       .clock = clock_,
                       .classes = book_.get()},
                      std::move(options));
    auto admitted = test::RunOn(state_, [&] {
      return admitter.Admit(demand, moment, DeadlineAfter(std::chrono::seconds(10)));
    });
    test::Settle(state_);
    return admitted;
  }

  std::unique_ptr<ClassBook> book_;
};

TEST_F(ClassStepTest, OneCommitHasTheClassBesideTheAllocations) {
  const auto admitted = AdmitWithClasses(Asking("slow"));
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_THAT(admitted->classes.unified, ElementsAre(Pair("blockio.class", "slow")));
  EXPECT_EQ(journal_.commits(), 1u);
  EXPECT_THAT(*Record(Demand())->classes, ElementsAre(Pair("blockio", "slow")));
  EXPECT_FALSE(Record(Demand())->allocations.empty());
}

TEST_F(ClassStepTest, ExplainShowsTheClassAndWhereTheRequestCameFrom) {
  ASSERT_TRUE(AdmitWithClasses(Asking("slow")).ok());
  EXPECT_EQ(LastTrace()["classes"]["blockio"]["class"], "slow");
  EXPECT_EQ(LastTrace()["classes"]["blockio"]["by"], "annotation " + std::string(kKey) + "=slow");
}

TEST_F(ClassStepTest, AContainerWithoutAClassGetsTheClassOfItsPool) {
  ResourceAllocation given = test::Pin(kCpusetCpus, "0-1");
  given.decided_by = "pools.batch";
  given.class_defaults = {{"blockio", "slow"}, {"unknown", "slow"}};
  plugins_.Set("cpu", test::Gives("cpu", given));
  ASSERT_TRUE(AdmitWithClasses(Demand("a")).ok());
  EXPECT_THAT(*Record(Demand("a"))->classes, ElementsAre(Pair("blockio", "slow")));
  EXPECT_EQ(LastTrace()["classes"]["blockio"]["by"], "cpu's default of pools.batch");
  ASSERT_TRUE(AdmitWithClasses(Asking("fast", "b")).ok());
  EXPECT_THAT(*Record(Demand("b"))->classes, ElementsAre(Pair("blockio", "fast")));
}

TEST_F(ClassStepTest, ARejectedClassAsksNoPluginAndLeavesNothing) {
  const auto refused = AdmitWithClasses(Asking("gold"));
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("it may use fast, slow"));
  EXPECT_THAT(plugins_.calls(), IsEmpty());
  EXPECT_EQ(Record(Demand()), nullptr);
}

TEST_F(ClassStepTest, AFullClassRejectsAndOneThatIsFreedAdmitsOneMore) {
  ASSERT_TRUE(AdmitWithClasses(Asking("fast", "a")).ok());
  ASSERT_TRUE(AdmitWithClasses(Asking("fast", "b")).ok());
  EXPECT_EQ(AdmitWithClasses(Asking("fast", "c")).status().code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(test::IsOk(
      test::RunOn(state_, [&] { return state_.Commit({.remove_pods = {Demand("a").pod.uid}}); })));
  EXPECT_TRUE(AdmitWithClasses(Asking("fast", "c")).ok());
  EXPECT_EQ(AdmitWithClasses(Asking("fast", "d")).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(ClassStepTest, ContainersOfOneAdmissionCountEachOther) {
  placement::ContainerDemand pod = Asking("fast", "a");
  for (const char* name : {"second", "third"}) {
    placement::ContainerDemand other = Asking("fast", "a");
    other.container = name;
    pod.others.push_back(other);
  }
  EXPECT_EQ(AdmitWithClasses(pod).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Record(Demand("a")), nullptr);
}

TEST_F(ClassStepTest, ARestartedContainerKeepsTheClassOfItsRecord) {
  ASSERT_TRUE(AdmitWithClasses(Asking("slow")).ok());
  const auto repeated = AdmitWithClasses(Asking("fast"));
  ASSERT_TRUE(repeated.ok()) << repeated.status();
  EXPECT_THAT(repeated->classes.unified, ElementsAre(Pair("blockio.class", "slow")));
  EXPECT_THAT(*Record(Demand())->classes, ElementsAre(Pair("blockio", "slow")));
}

TEST_F(ClassStepTest, AContainerThatNoPluginServesGetsItsClass) {
  placement::ContainerDemand demand = Asking("slow");
  demand.requests.Edit().clear();
  const auto admitted = AdmitWithClasses(demand, {.native_resources = {}});
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  ASSERT_NE(Record(demand), nullptr);
  EXPECT_THAT(*Record(demand)->classes, ElementsAre(Pair("blockio", "slow")));
}

TEST_F(ClassStepTest, ASkippedContainerGetsTheClassThatItAsksFor) {
  const auto admitted = AdmitWithClasses(Asking("slow"), {.skipped_namespaces = {"default"}});
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_THAT(admitted->classes.unified, ElementsAre(Pair("blockio.class", "slow")));
  ASSERT_NE(Record(Demand()), nullptr);
  EXPECT_THAT(*Record(Demand())->classes, ElementsAre(Pair("blockio", "slow")));
  EXPECT_THAT(plugins_.allocated("cpu").annotations, testing::SizeIs(1));
}

TEST_F(ClassStepTest, ASkippedContainerGetsItsClassThoughNoPluginAnswers) {
  plugins_.Set("cpu", {.gives = Errorf(StatusCode::kInternal, "oops")});
  const auto admitted = AdmitWithClasses(Asking("slow"), {.skipped_namespaces = {"default"}});
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_THAT(admitted->classes.unified, ElementsAre(Pair("blockio.class", "slow")));
  ASSERT_NE(Record(Demand()), nullptr);
  EXPECT_THAT(*Record(Demand())->classes, ElementsAre(Pair("blockio", "slow")));
  EXPECT_TRUE(Record(Demand())->allocations.empty());
}

TEST_F(ClassStepTest, ASkippedContainerIsRejectedForAClassThatItMayNotHave) {
  const auto refused = AdmitWithClasses(Asking("gold"), {.skipped_namespaces = {"default"}});
  EXPECT_THAT(MessageOf(refused.status()),
              HasSubstr("asks for blockio class gold, but the node has no such class"));
  EXPECT_EQ(Record(Demand()), nullptr);
}

TEST_F(ClassStepTest, SkippedContainersTakePlacesOfAClass) {
  for (const char* pod : {"a", "b"}) {
    ASSERT_TRUE(AdmitWithClasses(Asking("fast", pod), {.skipped_namespaces = {"default"}}).ok());
  }
  EXPECT_EQ(AdmitWithClasses(Asking("fast", "c")).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(ClassStepTest, AKeyForAContainerThatThePodLacksIsRejected) {
  placement::ContainerDemand demand = Demand();
  demand.pod.annotations.Edit()["blockio.resources.alpha.kubernetes.io/container.mian"] = "slow";
  EXPECT_THAT(MessageOf(AdmitWithClasses(demand).status()),
              HasSubstr("names a container that the pod does not have; its containers are main"));
  demand.has_all_others = false;
  EXPECT_TRUE(AdmitWithClasses(demand).ok());
}

TEST_F(ClassStepTest, ARunningContainerIsOnRecordWithoutTheImmutableClassThatItAsksFor) {
  placement::ContainerDemand demand = Demand();
  demand.pod.annotations.Edit()["oom.resources.alpha.kubernetes.io/default"] = "first";
  demand.requests.Edit().clear();
  const auto admitted =
      AdmitWithClasses(demand, {.native_resources = {}}, Admitter::Moment::kAfterTheFact);
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  ASSERT_NE(Record(demand), nullptr);
  EXPECT_THAT(*Record(demand)->classes, ElementsAre(Pair("oom", "")));
}

TEST_F(ClassStepTest, AClassThatAnotherAnnotationOverridesMustBeAllowed) {
  placement::ContainerDemand demand = Asking("gold");
  demand.pod.annotations.Edit()["blockio.resources.beta.kubernetes.io/container.main"] = "slow";
  EXPECT_THAT(MessageOf(AdmitWithClasses(demand).status()),
              HasSubstr("asks for blockio class gold, but namespace default may not ask for it"));
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(ClassStepTest, AKeyThatNoContainerHasIsRejected) {
  placement::ContainerDemand demand = Demand();
  demand.pod.annotations.Edit()["blockio.resources.alpha.kubernetes.io/pod"] = "slow";
  EXPECT_THAT(MessageOf(AdmitWithClasses(demand).status()),
              HasSubstr("write blockio.resources.alpha.kubernetes.io/default"));
}

TEST_F(ClassStepTest, WhileClassesAreOffNoAnnotationIsRead) {
  const auto admitted = Admit(Asking("../gold"));
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_EQ(admitted->classes, sdk::ClassOptions());
  EXPECT_THAT(*Record(Demand())->classes, IsEmpty());
}

TEST_F(ClassStepTest, ADryRunShowsTheClassOrItsRejection) {
  const DryRun dry_run({.plugins = plugins_,
                        .machine = machine_,
                        .clock = clock_,
                        .state = &state_,
                        .classes = book_.get()},
                       {});
  const Deadline deadline = DeadlineAfter(std::chrono::seconds(10));
  const DryRunReport admitted = dry_run.Run({Asking("slow")}, deadline);
  EXPECT_THAT(admitted.decisions.at(0).trace.json, HasSubstr(R"("class":"slow")"));
  EXPECT_THAT(admitted.notes,
              testing::Contains(HasSubstr("runtimes read class keys with beta, too")));
  const DryRunReport refused = dry_run.Run({Asking("gold")}, deadline);
  EXPECT_EQ(refused.result, DryRunReport::Result::kRejected);
  EXPECT_THAT(refused.message, HasSubstr("the node has no such class"));
}

}  // namespace
}  // namespace qrm::manager::class_step_test
