#include "manager/classes/class_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qrm::manager::class_choice_test {
namespace {

using checkpoint::NodeState;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kKey[] = "blockio.resources.beta.kubernetes.io/pod";

// A node with the type blockio: fast for two in namespaces db and db-*, slow for all, gone for
// none.
class ClassChoiceTest : public testing::Test {
 protected:
  ClassChoiceTest() {
    rules_.classes["fast"] = {.capacity = 2, .namespaces = {"db", "db-*"}};
    rules_.classes["slow"] = {.namespaces = {"*"}};
    rules_.classes["gone"] = {.namespaces = {"*"}};
    blockio_.type.name = "blockio";
    blockio_.type.classes = {{.name = "fast"},
                             {.name = "gone", .problem = "/dev/sdx1 is a partition"},
                             {.name = "slow"},
                             {.name = "secret"}};
    blockio_.rules = {std::shared_ptr<void>(), &rules_};
  }

  static checkpoint::PodMeta Pod(const std::string& name, const std::string& asks) {
    checkpoint::PodMeta pod{
        .uid = "uid-" + name, .pod_namespace = "db", .name = name, .qos_class = "Burstable"};
    if (!asks.empty()) {
      pod.annotations.Edit()[kKey] = asks;
    }
    return pod;
  }

  StatusOr<ChosenClasses> Choose(const checkpoint::PodMeta& pod,
                                 const std::string& container = "main",
                                 ContainerType type = ContainerType::kMain) {
    return ChooseClasses({blockio_},
                         {.pod = pod,
                          .container = container,
                          .type = type,
                          .defaults = defaults_,
                          .defaults_by = "cpu's default of pool batch"},
                         state_, [this](const std::string& name) { return name == permitted_; });
  }
  std::string ClassOf(const checkpoint::PodMeta& pod) {
    const auto chosen = Choose(pod);
    return chosen.ok() && chosen->contains("blockio") ? chosen->at("blockio").name
                                                      : MessageOf(chosen.status());
  }
  void Give(const checkpoint::PodMeta& pod, const std::string& container, const std::string& name,
            ContainerType type = ContainerType::kMain) {
    checkpoint::Change change;
    change.put_containers.push_back(
        {pod, container, {.type = type, .classes = {{"blockio", name}}}});
    state_ = state_.With(std::move(change));
  }

  ClassTypeRules rules_;
  OfferedType blockio_;
  NodeState state_;
  std::string permitted_;
  StringMap defaults_;
};

TEST_F(ClassChoiceTest, RightsThatTheApiServerChecksOpenAClassToAllPodsButStaticOnes) {
  checkpoint::PodMeta pod = Pod("a", "secret");
  EXPECT_THAT(ClassOf(pod), HasSubstr("namespace db may not ask for it"));
  for (std::vector<std::string> ClassRule::* rights :
       {&ClassRule::service_accounts, &ClassRule::namespace_labels}) {
    rules_.classes["secret"] = {};
    rules_.classes["secret"].*rights = {"whatever"};
    for (const char* source : {"api", "file", "http"}) {
      pod.annotations.Edit()["kubernetes.io/config.source"] = source;
      EXPECT_EQ(ClassOf(pod) == "secret", source == std::string("api")) << source;
    }
  }
}

TEST_F(ClassChoiceTest, GivesTheRequestedClassAndReportsIt) {
  const auto chosen = Choose(Pod("a", "slow"));
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->at("blockio"),
            (ChosenClass{"slow", "annotation " + std::string(kKey) + "=slow"}));
}

TEST_F(ClassChoiceTest, AnUnregisteredTypeRejectsKeysOfEitherLevel) {
  blockio_.type.classes.clear();
  blockio_.type.problem = "no plugin has registered";
  checkpoint::PodMeta pod = Pod("a", "");
  EXPECT_TRUE(Choose(pod).ok());
  pod.annotations.Edit()["blockio.resources.qrm.io/pod"] = "fast";
  EXPECT_THAT(MessageOf(Choose(pod).status()), HasSubstr("no plugin has registered"));
}

// A second type, whose class sets one of blockio's files.
class RivalTypesTest : public ClassChoiceTest {
 protected:
  RivalTypesTest() {
    blockio_.type.classes.back().files = {};
    for (sdk::ClassInfo& info : blockio_.type.classes) {
      info.files = {"io.max", "io.weight"};
    }
    other_rules_.classes["low"] = {.namespaces = {"*"}};
    other_.type = {.name = "other", .classes = {{.name = "low", .files = {"io.weight"}}}};
    other_.rules = {std::shared_ptr<void>(), &other_rules_};
  }

  StatusOr<ChosenClasses> ChooseOfBoth(const checkpoint::PodMeta& pod) {
    return ChooseClasses({blockio_, other_}, {.pod = pod, .container = "main"}, state_,
                         [](const std::string&) { return false; });
  }

  ClassTypeRules other_rules_;
  OfferedType other_;
};

TEST_F(RivalTypesTest, ClassesThatSetTheSameFileAreRejectedTogether) {
  checkpoint::PodMeta pod = Pod("a", "slow");
  pod.annotations.Edit()["other.resources.alpha.kubernetes.io/default"] = "low";
  EXPECT_THAT(MessageOf(ChooseOfBoth(pod).status()),
              AllOf(HasSubstr("other.resources.alpha.kubernetes.io/default=low"),
                    HasSubstr("classes of other and of blockio both set io.weight"),
                    HasSubstr("low and slow cannot be given together")));
  other_.type.level = sdk::ClassLevel::kPod;  // of another cgroup
  pod.annotations = {};
  EXPECT_TRUE(CheckRivals({blockio_, other_}, other_, "low", {{"blockio", "slow"}}).ok());
}

TEST_F(RivalTypesTest, ADefaultGivesWayToARequestForTheSameFile) {
  rules_.default_class = "slow";
  checkpoint::PodMeta pod = Pod("a", "");
  pod.annotations.Edit()["other.resources.alpha.kubernetes.io/default"] = "low";
  const auto chosen = ChooseOfBoth(pod);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(ToRecord(*chosen), (StringMap{{"other", "low"}}));
}

TEST_F(ClassChoiceTest, AnInvalidPodLevelClassRejectsTheContainersOfThePod) {
  blockio_.type.level = sdk::ClassLevel::kPod;
  checkpoint::PodMeta pod = Pod("a", "");
  pod.annotations.Edit()["blockio.resources.qrm.io/pod"] = "gold";
  for (const char* container : {"main", "side"}) {
    EXPECT_EQ(Choose(pod, container).status().code(), StatusCode::kNotFound);
  }
}

TEST_F(ClassChoiceTest, ASkippedPodGetsTheDefaultOfItsNamespaceOnly) {
  rules_.default_class = "slow";
  const checkpoint::PodMeta pod = Pod("a", "");
  const auto choose = [&] {
    const auto chosen =
        ChooseClasses({blockio_}, {.pod = pod, .container = "main", .is_skipped = true}, state_,
                      [](const std::string&) { return false; });
    return ToRecord(chosen.value_or(ChosenClasses()));
  };
  EXPECT_THAT(choose(), IsEmpty());
  rules_.namespace_defaults["db"] = "fast";
  EXPECT_EQ(choose(), (StringMap{{"blockio", "fast"}}));
}

TEST_F(ClassChoiceTest, RejectsAnUnknownClassAndListsTheAllowedOnes) {
  const auto chosen = Choose(Pod("a", "gold"));
  EXPECT_EQ(chosen.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(chosen.status()),
              AllOf(HasSubstr("asks for blockio class gold, but the node has no such class"),
                    HasSubstr("it may use fast, slow")));
}

TEST_F(ClassChoiceTest, RejectsAClassWithItsProblem) {
  const auto chosen = Choose(Pod("a", "gone"));
  EXPECT_EQ(chosen.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(MessageOf(chosen.status()), HasSubstr("/dev/sdx1 is a partition"));
}

TEST_F(ClassChoiceTest, RejectsAClassThatTheNamespaceMayNotAskFor) {
  checkpoint::PodMeta pod = Pod("a", "fast");
  pod.pod_namespace = "web";
  const auto chosen = Choose(pod);
  EXPECT_EQ(chosen.status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(MessageOf(chosen.status()),
              AllOf(HasSubstr("namespace web may not ask for it"), HasSubstr("it may use slow")));
}

TEST_F(ClassChoiceTest, PermissionsOpenAClassWithoutNamespaces) {
  EXPECT_THAT(ClassOf(Pod("a", "secret")), HasSubstr("may not ask for it"));
  permitted_ = "blockio/secret";
  EXPECT_EQ(ClassOf(Pod("a", "secret")), "secret");
}

TEST_F(ClassChoiceTest, RejectsOneMoreThanTheCapacity) {
  Give(Pod("a", "fast"), "main", "fast");
  EXPECT_EQ(ClassOf(Pod("b", "fast")), "fast");
  Give(Pod("b", "fast"), "main", "fast");
  const auto chosen = Choose(Pod("c", "fast"));
  EXPECT_EQ(chosen.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(MessageOf(chosen.status()),
              AllOf(HasSubstr("the class is full (capacity 2)"), HasSubstr("it may use slow")));
}

TEST_F(ClassChoiceTest, CountsInitContainersOfAPodAsOneAndOnlyWhileNoOtherHasTheClass) {
  const auto pod = Pod("a", "fast");
  Give(pod, "init1", "fast", ContainerType::kInit);
  Give(pod, "init2", "fast", ContainerType::kInit);
  EXPECT_EQ(CountUsers(state_, blockio_, "fast"), 1u);
  Give(pod, "main", "fast");
  EXPECT_EQ(CountUsers(state_, blockio_, "fast"), 1u);
  Give(pod, "other", "fast");
  EXPECT_EQ(CountUsers(state_, blockio_, "fast"), 2u);
}

TEST_F(ClassChoiceTest, TheContainerItselfIsNotCountedTwice) {
  Give(Pod("a", "fast"), "main", "fast");
  Give(Pod("b", "fast"), "main", "fast");
  EXPECT_EQ(ClassOf(Pod("b", "fast")), "fast");
}

TEST_F(ClassChoiceTest, TheNarrowestDefaultIsGivenToContainersThatAskForNothing) {
  EXPECT_THAT(*Choose(Pod("a", "")), IsEmpty());
  rules_.default_class = "slow";
  EXPECT_EQ(ClassOf(Pod("a", "")), "slow");
  rules_.qos_defaults["Burstable"] = "secret";
  EXPECT_EQ(ClassOf(Pod("a", "")), "secret");
  rules_.namespace_defaults["db"] = "fast";
  EXPECT_EQ(ClassOf(Pod("a", "")), "fast");
}

TEST_F(ClassChoiceTest, TheClassOfAPoolComesBeforeTheOperatorsDefaultsAndAfterTheAnnotation) {
  rules_.namespace_defaults["db"] = "fast";
  defaults_["blockio"] = "secret";
  EXPECT_EQ(Choose(Pod("a", ""))->at("blockio"),
            (ChosenClass{"secret", "cpu's default of pool batch"}));
  EXPECT_EQ(ClassOf(Pod("a", "slow")), "slow");
  defaults_["blockio"] = "gone";
  EXPECT_THAT(*Choose(Pod("a", "")), IsEmpty()) << "it cannot be given";
}

TEST_F(ClassChoiceTest, ADefaultThatCannotBeGivenRejectsNoContainer) {
  rules_.default_class = "gone";
  const auto chosen = Choose(Pod("a", ""));
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_THAT(*chosen, IsEmpty());
}

TEST_F(ClassChoiceTest, AnEmptyValueAsksForNoClassAlsoWhereThereIsADefault) {
  rules_.default_class = "slow";
  checkpoint::PodMeta pod = Pod("a", "");
  pod.annotations.Edit()[kKey] = "";
  const auto chosen = Choose(pod);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->at("blockio").name, "");
}

TEST_F(ClassChoiceTest, APodLevelClassCountsPodsAndIsOneForAllItsContainers) {
  blockio_.type.level = sdk::ClassLevel::kPod;
  rules_.default_class = "fast";
  Give(Pod("a", ""), "main", "fast");
  Give(Pod("a", ""), "side", "fast");
  EXPECT_EQ(CountUsers(state_, blockio_, "fast"), 1u);
  rules_.default_class = "slow";
  const auto chosen = Choose(Pod("a", ""), "third");
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(chosen->at("blockio").name, "fast");
}

TEST_F(ClassChoiceTest, ARunningContainerThatAsksForATypeThatCannotChangeIsRecordedWithoutIt) {
  blockio_.type.is_mutable = false;
  const auto pod = Pod("a", "slow");
  const auto chosen = ChooseClasses({blockio_}, {.pod = pod, .container = "main", .runs = true},
                                    state_, [](const std::string&) { return false; });
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_EQ(ToRecord(*chosen), (StringMap{{"blockio", ""}})) << "so that it is marked";
}

}  // namespace
}  // namespace qrm::manager::class_choice_test
