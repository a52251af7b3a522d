#include "manager/drivers/driver_choice.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/pod_texts.h"
#include "test/support/sample_node.h"

namespace qrm::manager::driver_choice_test {
namespace {

using testing::AllOf;
using testing::Field;
using testing::HasSubstr;
using testing::Optional;

// A node whose operator gives driver fast to namespaces game-* and to a runtime class.
const placement::DriverOptions kOptions = {
    {"fast",
     {.namespaces = {"db"},
      .default_namespaces = {"game-*"},
      .runtime_classes = {"gold"},
      .spec = "from the node"}},
};

placement::ContainerDemand Demand(const StringMap& annotations,
                                  const std::string& pod_namespace = "db") {
  placement::ContainerDemand demand{.pod = test::SamplePod("web", pod_namespace),
                                    .container = "main"};
  demand.pod.annotations = annotations;
  return demand;
}

std::optional<DriverChoice> Choose(const placement::ContainerDemand& demand, double cpus = 2) {
  return ChooseDriver(demand, cpus, kOptions).value_or(std::nullopt);
}

TEST(DriverChoiceTest, APodAsksByAnnotation) {
  EXPECT_THAT(Choose(Demand({{"cci.qrm.io/driver", "slow"}, {"cci.qrm.io/spec", "cold"}})),
              Optional(AllOf(Field(&DriverChoice::name, "slow"), Field(&DriverChoice::spec, "cold"),
                             Field(&DriverChoice::by, "annotation cci.qrm.io/driver=slow"),
                             Field(&DriverChoice::by_operator, false))));
}

TEST(DriverChoiceTest, AContainersOwnAnnotationWinsOverItsPods) {
  EXPECT_THAT(
      Choose(Demand({{"cci.qrm.io/driver", "slow"},
                     {"driver.cci.qrm.io/container.main", "fast"},
                     {"cci.qrm.io/spec", "pod"},
                     {"spec.cci.qrm.io/container.main", "own"}})),
      Optional(AllOf(Field(&DriverChoice::name, "fast"), Field(&DriverChoice::spec, "own"))));
}

TEST(DriverChoiceTest, ANamespaceHasADefaultWithTheNodesSpec) {
  EXPECT_THAT(Choose(Demand({}, "game-1")),
              Optional(AllOf(Field(&DriverChoice::name, "fast"),
                             Field(&DriverChoice::spec, "from the node"),
                             Field(&DriverChoice::by_operator, true))));
  EXPECT_EQ(Choose(Demand({}, "db")), std::nullopt);
}

TEST(DriverChoiceTest, ARuntimeClassHasADefault) {
  placement::ContainerDemand demand = Demand({});
  demand.runtime_class = "gold";
  EXPECT_THAT(Choose(demand), Optional(Field(&DriverChoice::by, "runtime class gold")));
}

TEST(DriverChoiceTest, AnEmptyAnnotationIsForNoDriver) {
  EXPECT_EQ(Choose(Demand({{"cci.qrm.io/driver", ""}}, "game-1")), std::nullopt);
}

TEST(DriverChoiceTest, APodsDriverAndDefaultsAreForEveryAppContainerThatRequestsCpus) {
  EXPECT_EQ(Choose(Demand({{"cci.qrm.io/driver", "fast"}}), 0), std::nullopt);
  for (placement::ContainerDemand second :
       {Demand({{"cci.qrm.io/driver", "fast"}}), Demand({}, "game-1")}) {
    second.type = ContainerType::kSidecar;
    EXPECT_THAT(Choose(second), Optional(Field(&DriverChoice::name, "fast")));
    second.restartable_init = true;
    EXPECT_EQ(Choose(second), std::nullopt) << "a native sidecar";
    second.pod.annotations.Edit()["driver.cci.qrm.io/container.main"] = "fast";
    EXPECT_THAT(Choose(second), Optional(Field(&DriverChoice::name, "fast")));
  }
  placement::ContainerDemand init = Demand({{"cci.qrm.io/driver", "fast"}});
  init.type = ContainerType::kInit;
  EXPECT_EQ(Choose(init), std::nullopt);
  init.pod.annotations.Edit()["driver.cci.qrm.io/container.main"] = "fast";
  EXPECT_THAT(Choose(init), Optional(Field(&DriverChoice::name, "fast")));
}

TEST(DriverChoiceTest, RejectsWhatCannotBe) {
  const auto why = [](const StringMap& annotations, double cpus) {
    return MessageOf(ChooseDriver(Demand(annotations), cpus, kOptions).status());
  };
  EXPECT_THAT(why({{"cci.qrm.io/driver", "No_Name"}}, 1),
              HasSubstr("\"No_Name\" is not the name of a compute driver"));
  EXPECT_THAT(why({{"driver.cci.qrm.io/container.main", "fast"}}, 0),
              HasSubstr("the container requests no CPU"));
}

TEST(DriverChoiceTest, TakesASpecOf16KiBAndRejectsALongerOne) {
  StringMap annotations = {{"cci.qrm.io/driver", "fast"},
                           {"cci.qrm.io/spec", std::string(16 << 10, 'a')}};
  EXPECT_EQ(Choose(Demand(Bounded(annotations)))->spec, annotations["cci.qrm.io/spec"]);
  annotations["cci.qrm.io/spec"] += "a";
  for (const StringMap& told : {annotations, Bounded(annotations)}) {
    EXPECT_THAT(MessageOf(ChooseDriver(Demand(told), 1, kOptions).status()),
                HasSubstr("... (16385 bytes)', is too long; write at most 16384 bytes"));
  }
}

TEST(DriverChoiceTest, IsOpenToTheNamespacesOfItsRule) {
  EXPECT_TRUE(IsOpenTo(kOptions, "fast", "db"));
  EXPECT_FALSE(IsOpenTo(kOptions, "fast", "web"));
  EXPECT_FALSE(IsOpenTo(kOptions, "slow", "db"));
}

}  // namespace
}  // namespace qrm::manager::driver_choice_test
