// Records are right about the plugin of each allocation and the node's resources, also after a
// failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "manager/admission/admitter.h"
#include "manager/admission/request_rules.h"
#include "test/manager/admission/admitter_fixture.h"

namespace qrm::manager::one_truth_test {
namespace {

using test::AdmitterTest;
using test::Demand;
using test::Gives;
using test::Pin;
using test::PluginScript;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST_F(AdmitterTest, RestoresTheFormerAllocationInPluginsWhenTheDiskRejectsALargerOne) {
  ASSERT_TRUE(Admit(Demand()).ok());
  placement::ContainerDemand more = Demand();
  more.requests.Edit()["cpu"] = 4;
  plugins_.Set("cpu", Gives("cpu", Pin(kCpusetCpus, "0-3")));
  plugins_.ForgetCalls();
  journal_.Fail(Errorf(StatusCode::kResourceExhausted, "disk full"));
  const auto again = Admit(more);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->properties.at("CpusetCpus"), "0-1");
  EXPECT_THAT(plugins_.calls(), Contains("restore cpu uid-web/main=0-1"));
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("release"))));
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("remove"))));
}

TEST_F(AdmitterTest, ARunningContainerKeepsItsAllocationsWhenAnotherPluginFails) {
  PluginScript full;
  full.gives = Errorf(StatusCode::kResourceExhausted, "no memory");
  plugins_.Set("memory", full);
  EXPECT_FALSE(Admit(Demand(), {}, Admitter::Moment::kAfterTheFact).ok());
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("remove"))));
}

TEST_F(AdmitterTest, RestoresWhatAResizedContainerHasWhenAnotherPluginFails) {
  ASSERT_TRUE(Admit(Demand()).ok());
  PluginScript full;
  full.gives = Errorf(StatusCode::kResourceExhausted, "no memory");
  plugins_.Set("memory", full);
  plugins_.Set("cpu", Gives("cpu", Pin(kCpusetCpus, "0-3")));
  placement::ContainerDemand more = Demand();
  more.requests.Edit()["cpu"] = 4;
  more.requests.Edit()["memory"] = 2 << 20;
  plugins_.ForgetCalls();
  EXPECT_FALSE(Admit(more, {}, Admitter::Moment::kAfterTheFact).ok());
  EXPECT_THAT(plugins_.calls(), Contains("restore cpu uid-web/main=0-1"));
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("restore memory")))) << "it gave nothing";
}

TEST_F(AdmitterTest, AsksNoPluginForWhatARunningContainerCouldNotChange) {
  plugins_.Set("nic", Gives("nic", {.envs = {{"NIC", "eth0"}}}));
  placement::ContainerDemand with_nic = Demand();
  with_nic.requests.Edit()["nic"] = 100;
  ASSERT_TRUE(Admit(with_nic).ok());
  plugins_.ForgetCalls();
  with_nic.requests = {{"cpu", 4}, {"nic", 200}};
  ASSERT_TRUE(Admit(with_nic, {}, Admitter::Moment::kAfterTheFact).ok());
  EXPECT_THAT(plugins_.calls(), Contains("allocate cpu"));
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("nic"))));
  ASSERT_TRUE(Admit(with_nic).ok());
  EXPECT_THAT(plugins_.calls(), Contains("allocate nic")) << "when it is recreated";
}

// A container that ran before the plugin of "nic", which gives a variable, had registered.
placement::ContainerDemand RunsWithoutNic() {
  placement::ContainerDemand demand = Demand();
  demand.requests.Edit()["nic"] = 1;
  demand.runtime_id = "4f3c2b1a";
  return demand;
}

TEST_F(AdmitterTest, ClaimsNothingThatARunningContainerWasMadeWithout) {
  plugins_.Set("nic", Gives("nic", {.envs = {{"NIC", "eth0"}}}));
  ASSERT_TRUE(Admit(RunsWithoutNic(), {}, Admitter::Moment::kAfterTheFact).ok());
  const checkpoint::ContainerRecord* record = Record(RunsWithoutNic());
  ASSERT_NE(record, nullptr);
  EXPECT_FALSE(record->allocations.contains("nic"));
  EXPECT_TRUE(record->allocations.contains("cpu"));
  EXPECT_TRUE(Lacks(*record, "nic", {}));
  EXPECT_THAT(plugins_.calls(), Contains("release nic uid-web/main")) << "others may have it";
  EXPECT_THAT(LastTrace()["too_late_for"], ElementsAre("nic"));
}

TEST_F(AdmitterTest, KeepsTheValuesOfAContainerThatIsNotCreatedYet) {
  plugins_.Set("nic", Gives("nic", {.envs = {{"NIC", "eth0"}}}));
  placement::ContainerDemand demand = RunsWithoutNic();
  placement::ContainerDemand next = RunsWithoutNic();
  next.container = "next";
  next.runtime_id = {};
  demand.others = {next};
  ASSERT_TRUE(Admit(demand, {}, Admitter::Moment::kAfterTheFact).ok());
  EXPECT_FALSE(Record(demand)->allocations.contains("nic"));
  EXPECT_TRUE(Record(next)->allocations.contains("nic"));
}

TEST_F(AdmitterTest, ClaimsWhatTheRuntimeSaysThatARunningContainerWasMadeWith) {
  plugins_.Set("nic", Gives("nic", {.envs = {{"NIC", "eth0"}}}));
  placement::ContainerDemand demand = RunsWithoutNic();
  demand.made_with.env = {"PATH=/bin", "NIC=eth0"};
  ASSERT_TRUE(Admit(demand, {}, Admitter::Moment::kAfterTheFact).ok());
  EXPECT_TRUE(Record(demand)->allocations.contains("nic"));
  EXPECT_THAT(plugins_.calls(), Not(Contains(HasSubstr("release"))));
}

TEST_F(AdmitterTest, GivesARecreatedContainerWhatItRanWithout) {
  plugins_.Set("nic", Gives("nic", {.envs = {{"NIC", "eth0"}}}));
  ASSERT_TRUE(Admit(RunsWithoutNic(), {}, Admitter::Moment::kAfterTheFact).ok());
  const auto made = Admit(RunsWithoutNic());
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(made->envs.at("NIC"), "eth0");
  EXPECT_FALSE(Lacks(*Record(RunsWithoutNic()), "nic", {}));
}

TEST_F(AdmitterTest, ReleasesWhatARunningContainerCannotHave) {
  plugins_.Set("cpu", Gives("cpu", Pin(kCpusetCpus, "0-99")));
  EXPECT_FALSE(Admit(Demand(), {}, Admitter::Moment::kAfterTheFact).ok());
  EXPECT_THAT(plugins_.calls(), Contains("remove cpu uid-web"));
  EXPECT_THAT(plugins_.calls(), Not(Contains("remove memory uid-web")));
}

TEST_F(AdmitterTest, RecordsWhichPluginGaveEachAllocation) {
  PluginScript cpu;
  cpu.gives = AllocationByResource{{"cpu", Pin(kCpusetCpus, "0-1")},
                                   {"cache", ResourceAllocation{.envs = {{"CACHE", "l3"}}}}};
  plugins_.Set("cpu", cpu);
  ASSERT_TRUE(Admit(Demand()).ok());
  const auto& origins = Record(Demand())->origins;
  EXPECT_EQ(origins.at("cpu").plugin, "cpu");
  EXPECT_EQ(origins.at("cpu").endpoint, "/run/cpu.sock");
  EXPECT_EQ(origins.at("cache").plugin, "cpu");
  EXPECT_EQ(origins.at("memory").plugin, "memory");
}

TEST_F(AdmitterTest, RejectsMoreBoundMemoryThanANodeHasWhateverThePluginSays) {
  ResourceAllocation bound = Pin(kCpusetMems, "0");
  bound.amount_by_node = {{0, machine_.FindNode(0)->memory_bytes / 2 + 1}};
  plugins_.Set("memory", Gives("memory", bound));
  ASSERT_TRUE(Admit(Demand("web")).ok());
  EXPECT_THAT(Rejection(Demand("db")), HasSubstr("to NUMA node 0, which has"));
}

TEST_F(AdmitterTest, LetsMemoryOnSeveralNodesMakeWayForThatOnOne) {
  const uint64_t has = machine_.FindNode(0)->memory_bytes;
  ResourceAllocation wide = Pin(kCpusetMems, "0-1");
  wide.amount_by_node = {{0, has}, {1, 0}};
  plugins_.Set("memory", Gives("memory", wide));
  ASSERT_TRUE(Admit(Demand("web")).ok());
  ResourceAllocation one = Pin(kCpusetMems, "0");
  one.amount_by_node = {{0, has}};
  plugins_.Set("memory", Gives("memory", one));
  EXPECT_TRUE(Admit(Demand("db")).ok());
  EXPECT_THAT(Rejection(Demand("more")), HasSubstr("to NUMA node 0, which has"));
}

}  // namespace
}  // namespace qrm::manager::one_truth_test
