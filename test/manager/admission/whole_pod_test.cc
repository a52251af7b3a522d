// Pods whose spec is known: all their containers are placed with the first, or none.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "test/manager/admission/admitter_fixture.h"

namespace qrm::manager::whole_pod_test {
namespace {

using test::AdmitterTest;
using test::Demand;
using test::Gives;
using test::Pin;
using test::PluginScript;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Optional;
using testing::Pair;

// Containers setup (init), main and logger of one pod; the runtime creates `asked`.
placement::ContainerDemand WholePod(const std::string& asked) {
  placement::ContainerDemand setup = Demand("web", "setup");
  setup.type = ContainerType::kInit;
  placement::ContainerDemand logger = Demand("web", "logger");
  logger.type = ContainerType::kSidecar;
  std::vector<placement::ContainerDemand> all = {setup, Demand("web", "main"), logger};
  placement::ContainerDemand demand;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].container == asked) {
      demand = all[i];
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
      demand.place = i;
      break;
    }
  }
  demand.others = all;
  return demand;
}

class WholePodTest : public AdmitterTest {
 protected:
  std::vector<std::string> Placed() {
    std::vector<std::string> names;
    const auto state = state_.Load();
    if (const checkpoint::PodRecord* pod = state->FindPod("uid-web"); pod != nullptr) {
      for (const auto& [name, record] : pod->containers) {
        names.push_back(name);
      }
    }
    return names;
  }
};

TEST_F(WholePodTest, PlacesAllContainersWithTheFirstInOneCommit) {
  ASSERT_TRUE(Admit(WholePod("setup")).ok());
  EXPECT_THAT(Placed(), ElementsAre("logger", "main", "setup"));
  EXPECT_EQ(journal_.commits(), 1u);
  EXPECT_EQ(decisions_.log.Read().size(), 3u);
}

TEST_F(WholePodTest, AsksInTheOrderInWhichTheContainersStart) {
  std::vector<std::string> order;
  ASSERT_TRUE(Admit(WholePod("main")).ok());
  const auto changes = journal_.changes();
  for (const auto& put : changes.front().put_containers) {
    order.push_back(put.container);
  }
  EXPECT_THAT(order, ElementsAre("setup", "main", "logger"));
  EXPECT_EQ(plugins_.calls().size(), 12u) << "hints and allocations of two plugins for three";
}

TEST_F(WholePodTest, AnswersLaterContainersWithTheirReservedAllocation) {
  ASSERT_TRUE(Admit(WholePod("setup")).ok());
  plugins_.ForgetCalls();
  const auto later = Admit(WholePod("logger"));
  ASSERT_TRUE(later.ok());
  EXPECT_EQ(later->properties.at("CpusetCpus"), "0-1");
  EXPECT_THAT(plugins_.calls(), IsEmpty());
}

TEST_F(WholePodTest, NotesAppliedValuesOfEachContainerWhenItIsCreated) {
  placement::ContainerDemand setup = WholePod("setup");
  setup.runtime_id = "id-setup";
  ASSERT_TRUE(Admit(setup).ok());
  EXPECT_THAT(Record(Demand("web", "setup"))->AppliedTo("id-setup"),
              Contains(Pair("CpusetCpus", "0-1")));
  EXPECT_THAT(Record(Demand("web", "logger"))->applied, IsEmpty()) << "it does not exist yet";

  placement::ContainerDemand logger = WholePod("logger");
  logger.runtime_id = "id-logger";
  ASSERT_TRUE(Admit(logger).ok());
  EXPECT_THAT(Record(Demand("web", "logger"))->AppliedTo("id-logger"),
              Contains(Pair("CpusetCpus", "0-1")))
      << "it starts with these values: there is nothing to reconcile";
}

TEST_F(WholePodTest, PlacesNoneWhenOneDoesNotFitAndNamesIt) {
  int allocations = 0;
  plugins_.on_call = [&](const std::string& call) {
    if (call == "allocate memory" && ++allocations == 3) {
      PluginScript full;
      full.gives = Errorf(StatusCode::kResourceExhausted, "no memory");
      plugins_.Set("memory", full);
    }
  };
  const std::string message = Rejection(WholePod("setup"));
  EXPECT_THAT(message, HasSubstr("cannot admit container setup of pod default/web: container "
                                 "logger: resource memory: no memory"));
  EXPECT_THAT(Placed(), IsEmpty());
  EXPECT_THAT(plugins_.calls(), Contains("remove cpu uid-web"));
  EXPECT_THAT(plugins_.calls(), Contains("remove memory uid-web"));
  EXPECT_EQ(LastTrace()["container"], "logger");
}

TEST_F(WholePodTest, TheNameOfTheOneThatDoesNotFitMovesNoCursor) {
  placement::ContainerDemand demand = WholePod("setup");
  demand.others.back().container = "log\x1b[2J";
  PluginScript full;
  full.gives = Errorf(StatusCode::kResourceExhausted, "no memory");
  plugins_.on_call = [&, allocations = 0](const std::string& call) mutable {
    if (call == "allocate memory" && ++allocations == 3) {
      plugins_.Set("memory", full);
    }
  };
  EXPECT_THAT(Rejection(demand), HasSubstr(": container log\\x1b[2J: resource memory: no memory"));
}

TEST_F(WholePodTest, LeavesATraceOfEachContainerThatWasPlacedBeforeOneWasNot) {
  ResourceAllocation own = Pin(kCpusetCpus, "0-1");
  own.exclusive = true;
  plugins_.Set("cpu", Gives("cpu", own));
  const std::string message = Rejection(WholePod("setup"));
  const auto decisions = decisions_.log.Read();
  ASSERT_EQ(decisions.size(), 3u);
  for (const auto& decision : decisions) {
    EXPECT_FALSE(decision.admitted);
    EXPECT_EQ(nlohmann::json::parse(decision.json)["message"], message);
  }
  EXPECT_EQ(decisions[0].key.container, "setup");
  EXPECT_EQ(decisions[1].key.container, "main");
  EXPECT_EQ(decisions[2].key.container, "logger");
}

TEST_F(WholePodTest, ReleasesOnlyItsAllocationsWhenThePodHasOtherContainers) {
  ASSERT_TRUE(Admit(Demand("web", "older")).ok());
  journal_.Fail(Errorf(StatusCode::kResourceExhausted, "cannot write: disk full; free space"));
  EXPECT_THAT(Rejection(WholePod("setup")), HasSubstr("disk full"));
  EXPECT_THAT(plugins_.calls(), Contains("release cpu uid-web/logger"));
  EXPECT_THAT(plugins_.calls(), Contains("release memory uid-web/setup"));
  EXPECT_THAT(plugins_.calls(), Not(Contains("release cpu uid-web/older")));
  EXPECT_THAT(Placed(), ElementsAre("older"));
}

TEST_F(WholePodTest, DoesNotRiskARestartForContainersThatWereNeverPlaced) {
  ASSERT_TRUE(Admit(Demand("web", "main")).ok());
  PluginScript full;
  full.gives = Errorf(StatusCode::kResourceExhausted, "no memory");
  plugins_.Set("memory", full);
  EXPECT_TRUE(Admit(WholePod("main")).ok());
  EXPECT_THAT(Placed(), ElementsAre("main"));
}

TEST_F(WholePodTest, AsksAgainForTheCreatedContainerOnlyWhenTheSpecHasGrown) {
  ASSERT_TRUE(Admit(WholePod("setup")).ok());
  plugins_.ForgetCalls();
  placement::ContainerDemand resized = WholePod("main");
  resized.requests.Edit()["cpu"] = 3;
  resized.others[0].requests.Edit()["cpu"] = 3;
  ASSERT_TRUE(Admit(resized).ok());
  EXPECT_THAT(plugins_.calls(), ElementsAre("hints cpu", "allocate cpu"));
  EXPECT_EQ(Record(resized)->requests.at("cpu"), 3);
}

TEST_F(WholePodTest, RejectsCpusThatAnEarlierContainerOfThePodOwns) {
  ResourceAllocation own = Pin(kCpusetCpus, "0-1");
  own.exclusive = true;
  plugins_.Set("cpu", Gives("cpu", own));
  EXPECT_THAT(Rejection(WholePod("setup")),
              HasSubstr("container logger: resource cpu: it gave CPUs 0-1"));
  EXPECT_THAT(Placed(), IsEmpty());
}

TEST_F(WholePodTest, LetsTheMainContainerHaveTheCpusOfAnInitContainer) {
  ResourceAllocation own = Pin(kCpusetCpus, "0-1");
  own.exclusive = true;
  plugins_.Set("cpu", Gives("cpu", own));
  placement::ContainerDemand pod = WholePod("setup");
  pod.others.pop_back();
  ASSERT_TRUE(Admit(pod).ok());
  EXPECT_THAT(Placed(), ElementsAre("main", "setup"));
  EXPECT_THAT(Rejection(Demand("other")), HasSubstr("belong to container main"));
}

TEST_F(WholePodTest, SaysWhichContainersWerePlacedTogether) {
  ASSERT_TRUE(Admit(WholePod("setup")).ok());
  EXPECT_THAT(LastTrace()["together_with"], ElementsAre("setup", "main"));
}

// Scope pod.

const placement::AdmissionOptions kPodScope{.merge = {.policy = TopologyPolicy::kRestricted},
                                            .scope = TopologyScope::kPod};

PluginScript OnNode(int node, const std::string& cpus) {
  PluginScript script = Gives("cpu", Pin(kCpusetCpus, cpus));
  const TopologyHint hint{.nodes = NumaMask{node}, .preferred = true};
  script.hints = HintList({hint});
  script.gives->at("cpu").Edit().hints = {hint};
  return script;
}

TEST_F(WholePodTest, AsksOnceForAllContainersTogetherInPodScope) {
  plugins_.Set("cpu", OnNode(1, "4-7"));
  ASSERT_TRUE(Admit(WholePod("setup"), kPodScope).ok());
  const std::vector<std::string> calls = plugins_.calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "hints cpu"), 1);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "allocate cpu"), 3);
  EXPECT_EQ(plugins_.hinted("cpu").key.container, "main");
  EXPECT_EQ(plugins_.hinted("cpu").requests.at("cpu"), 4) << "main and logger; setup has ended";
  EXPECT_EQ(plugins_.allocated("cpu").requests.at("cpu"), 2) << "each has exclusive CPUs";
  EXPECT_THAT(plugins_.allocated("memory").hint, Optional(Field(&TopologyHint::nodes, NumaMask{1})))
      << "where the CPUs are";
  EXPECT_EQ(LastTrace()["scope"], "pod");
}

TEST_F(WholePodTest, RejectsAPodWhoseContainersDoNotFitTogetherInPodScope) {
  PluginScript full = OnNode(1, "4-7");
  full.hints = HintList(std::vector<TopologyHint>{});
  plugins_.Set("cpu", full);
  EXPECT_THAT(Rejection(WholePod("setup"), kPodScope),
              HasSubstr("cannot admit container setup of pod default/web: its containers together: "
                        "no NUMA placement fits"));
  EXPECT_THAT(Placed(), IsEmpty());
  EXPECT_THAT(plugins_.calls(), Not(Contains("allocate cpu")));
  EXPECT_EQ(LastTrace()["result"], "rejected");
}

TEST_F(WholePodTest, ContainersWithoutASpecJoinTheRestOfTheirPodInPodScope) {
  plugins_.Set("cpu", OnNode(1, "4-7"));
  ASSERT_TRUE(Admit(Demand("web", "first"), kPodScope).ok());
  PluginScript anywhere = OnNode(1, "4-7");
  anywhere.hints = HintList(
      {{.nodes = NumaMask{0}, .preferred = true}, {.nodes = NumaMask{1}, .preferred = true}});
  plugins_.Set("cpu", anywhere);
  ASSERT_TRUE(Admit(Demand("web", "second"), kPodScope).ok());
  EXPECT_THAT(plugins_.allocated("cpu").hint, Optional(Field(&TopologyHint::nodes, NumaMask{1})));
  ASSERT_TRUE(Admit(Demand("other", "first"), kPodScope).ok());
  EXPECT_THAT(plugins_.allocated("cpu").hint, Optional(Field(&TopologyHint::nodes, NumaMask{0})))
      << "another pod is free to choose";
}

TEST_F(WholePodTest, AsksForEachContainerInContainerScope) {
  ASSERT_TRUE(Admit(WholePod("setup")).ok());
  const std::vector<std::string> calls = plugins_.calls();
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "hints cpu"), 3);
}

}  // namespace
}  // namespace qrm::manager::whole_pod_test
