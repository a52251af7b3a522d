// Admissions while plugins are not running.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/admission/request_rules.h"
#include "test/manager/admission/admitter_fixture.h"

namespace qrm::test::absent_plugins_test {
namespace {

using manager::RegisteredBy;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kWidget[] = "example.com/widget";

class AbsentPluginsTest : public AdmitterTest {
 protected:
  /// The plugin of `resource` is not running; `by` says whether it has registered since qrmd
  /// started.
  void Lose(const std::string& resource, RegisteredBy by) {
    plugins_.Set(resource, {.registered_by = by, .live = false, .problem = "it is gone; start it"});
  }
  static placement::ContainerDemand DemandOf(const std::string& resource) {
    placement::ContainerDemand demand = Demand();
    demand.requests.Edit()[resource] = 1;
    return demand;
  }
  static placement::ContainerDemand In(const std::string& pod_namespace,
                                       placement::ContainerDemand demand) {
    demand.pod.pod_namespace = pod_namespace;
    return demand;
  }
};

TEST_F(AbsentPluginsTest, RejectsOnlyContainersThatRequestAPluginThatOnlyTheCheckpointKnows) {
  Lose(kWidget, RegisteredBy::kCheckpoint);
  EXPECT_TRUE(Admit(Demand()).ok());
  placement::ContainerDemand asking = DemandOf(kWidget);
  asking.pod = SamplePod("asking");
  EXPECT_EQ(Rejection(asking),
            "cannot admit container main of pod default/asking: resource example.com/widget: no "
            "plugin of example.com/widget has registered since qrmd started; start it and try "
            "again; if it is gone for good, drop its allocations with: qrmctl plugins forget "
            "example.com/widget; if this pod is the plugin's own, list its namespace default in "
            "plugin-namespaces");
}

TEST_F(AbsentPluginsTest, AsksNoCpusOfAPluginThatOnlyTheCheckpointKnows) {
  Lose("cpu", RegisteredBy::kCheckpoint);
  const auto admitted = Admit(Demand());
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_EQ(admitted->properties.count("CpusetCpus"), 0U);
  EXPECT_EQ(admitted->properties.at("CpusetMems"), "0");
  EXPECT_THAT(LastTrace()["requests_without_plugin"], ElementsAre("cpu"));
}

TEST_F(AbsentPluginsTest, KeepsNewContainersOffTheCpusOfOwnersOnRecord) {
  plugins_.Set("cpu", Gives("cpu", OwnCpus("0-1")));
  placement::ContainerDemand owner = Demand();
  owner.pod = SamplePod("owner");
  ASSERT_TRUE(Admit(owner).ok());
  Lose("cpu", RegisteredBy::kCheckpoint);
  const std::string others = ToString(machine_.cpu_set() - CpuSet{0, 1});
  const auto admitted = Admit(Demand());
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_EQ(admitted->properties.at("CpusetCpus"), others);
  EXPECT_EQ(Admit(owner)->properties.at("CpusetCpus"), "0-1");

  plugins_.Drop("memory");
  placement::ContainerDemand unserved = Demand();
  unserved.pod = SamplePod("unserved");
  const auto skipped = Admit(unserved);
  ASSERT_TRUE(skipped.ok()) << skipped.status();
  EXPECT_EQ(skipped->properties.at("CpusetCpus"), others);
  EXPECT_EQ(LastTrace()["result"], "skipped");
  EXPECT_EQ(LastTrace()["applied"]["CpusetCpus"], others);
}

TEST_F(AbsentPluginsTest, RepeatsTheRecordOfAPluginThatOnlyTheCheckpointKnows) {
  ASSERT_TRUE(Admit(Demand()).ok());
  Lose("cpu", RegisteredBy::kCheckpoint);
  EXPECT_EQ(Admit(Demand())->properties.at("CpusetCpus"), "0-1");
}

TEST_F(AbsentPluginsTest, RejectsEveryContainerWhileARequiredPluginIsNotRunning) {
  const placement::AdmissionOptions options{.required_plugins = {kWidget}};
  const std::string never_there = Rejection(Demand(), options);
  EXPECT_THAT(never_there,
              AllOf(HasSubstr("resource example.com/widget: no plugin of example.com/widget has "
                              "registered since qrmd started; start it"),
                    HasSubstr("take example.com/widget out of required-plugins")));
  Lose(kWidget, RegisteredBy::kWatcher);
  EXPECT_THAT(Rejection(Demand(), options),
              HasSubstr("the example.com/widget plugin at /run/example.com/widget.sock is not "
                        "running"));
  EXPECT_THAT(plugins_.calls(), IsEmpty());
  plugins_.Set(kWidget, {});
  EXPECT_TRUE(Admit(Demand(), options).ok());
}

TEST_F(AbsentPluginsTest, RejectsContainersWithoutRequestsWhileARequiredNativePluginIsNotRunning) {
  plugins_.Drop("cpu");
  placement::ContainerDemand demand = Demand();
  demand.requests.Edit().clear();
  EXPECT_THAT(Rejection(demand, {.required_plugins = {"cpu"}}), HasSubstr("resource cpu"));
}

TEST_F(AbsentPluginsTest, RepeatsARecordWhileARequiredPluginIsNotRunning) {
  ASSERT_TRUE(Admit(Demand()).ok());
  EXPECT_TRUE(Admit(Demand(), {.required_plugins = {kWidget}}).ok());
}

TEST_F(AbsentPluginsTest, AdmitsPluginsOwnPodsWithoutThePluginsThatAreNotRunning) {
  Lose("cpu", RegisteredBy::kRegister);
  Lose(kWidget, RegisteredBy::kCheckpoint);
  const placement::AdmissionOptions options{.required_plugins = {"cpu", "NIC"},
                                            .plugin_namespaces = {"plugins"},
                                            .skipped_namespaces = {}};
  const auto admitted = Admit(In("plugins", DemandOf(kWidget)), options);
  ASSERT_TRUE(admitted.ok()) << admitted.status();
  EXPECT_EQ(admitted->properties.at("CpusetMems"), "0");
  EXPECT_THAT(LastTrace()["requests_awaiting_plugin"], ElementsAre("cpu", kWidget));
  EXPECT_THAT(Rejection(In("kube-system", Demand("other")), options),
              HasSubstr("list its namespace kube-system in plugin-namespaces"));
}

TEST_F(AbsentPluginsTest, PlacesPluginsOwnPodsWhenThePluginsAreBack) {
  Lose("cpu", RegisteredBy::kRegister);
  const placement::ContainerDemand demand = In("kube-system", Demand());
  const placement::AdmissionOptions options{.skipped_namespaces = {}};
  ASSERT_TRUE(Admit(demand, options).ok());
  plugins_.Set("cpu", Gives("cpu", Pin(kCpusetCpus, "0-1")));
  ASSERT_TRUE(Admit(demand, options, Admitter::Moment::kAfterTheFact).ok());
  EXPECT_EQ(Record(demand)->allocations.at("cpu")->value, "0-1");
}

TEST_F(AbsentPluginsTest, SaysWhyAPluginsOwnPodIsNotPlacedYet) {
  Lose("cpu", RegisteredBy::kRegister);
  Lose("memory", RegisteredBy::kRegister);
  const placement::ContainerDemand demand = In("kube-system", Demand());
  ASSERT_TRUE(Admit(demand, {.skipped_namespaces = {}}).ok());
  EXPECT_EQ(Record(demand), nullptr);
  EXPECT_EQ(LastTrace()["result"], "skipped");
  EXPECT_EQ(LastTrace()["message"],
            "the plugins of its requests are not running: it is placed when they return");
}

}  // namespace
}  // namespace qrm::test::absent_plugins_test
