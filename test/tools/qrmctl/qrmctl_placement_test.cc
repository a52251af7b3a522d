// qrmctl topology and explain: the CPUs of containers, and why.
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "test/tools/qrmctl/qrmctl_fixture.h"
#include "topology/describe.h"
#include "topology/discovery.h"

namespace qrm::manager::cli::qrmctl_placement_test {
namespace {

using testing::HasSubstr;

TEST_F(QrmctlTest, TopologyPrintsTheMapAndTheContainersOfEachCpu) {
  Serve();
  AdmitTwoPods();
  EXPECT_EQ(Run({"topology"}), kDone) << err();
  EXPECT_EQ(out(), DescribeMachine(machine_) +
                       "use\n"
                       "  node 0: exclusive 1-2, shared 3, free 0, memory 2Gi\n"
                       "    CONTAINER       CPUS   MEMORY   STATE\n"
                       "    shop/db/main    1-2*   2Gi      -\n"
                       "    shop/web/main   3      -        -\n"
                       "  node 1: shared 4-7\n"
                       "    CONTAINER       CPUS   MEMORY   STATE\n"
                       "    shop/web/main   4-7    -        -\n");
}

TEST_F(QrmctlTest, CpusNamesTheContainersOnEachCpu) {
  Serve();
  AdmitTwoPods();
  EXPECT_EQ(Run({"cpus", "0-3"}), kDone) << err();
  EXPECT_EQ(out(),
            "CPU   NODE   USE         CONTAINERS\n"
            "0     0      free        -\n"
            "1     0      exclusive   shop/db/main\n"
            "2     0      exclusive   shop/db/main\n"
            "3     0      shared      shop/web/main\n");
  EXPECT_EQ(Run({"cpus", "1", "-o", "jsonpath={.cpus[0].containers[0]}"}), kDone) << err();
  EXPECT_EQ(out(), "shop/db/main\n");
}

TEST_F(QrmctlTest, CpusSaysWhichCpuTheNodeDoesNotHave) {
  Serve();
  EXPECT_EQ(Run({"cpus", "99"}), kFailed);
  EXPECT_EQ(err(),
            "qrmctl cpus: cannot show CPU 99: this node has none of that number; qrmctl topology "
            "shows its CPUs\n");
  EXPECT_EQ(Run({"cpus", "three"}), kMisuse);
}

TEST_F(QrmctlTest, ClassesListsWhatIsLeftOfRetiredTypes) {
  Serve();
  EXPECT_EQ(Run({"classes", "--left"}), kDone) << err();
  EXPECT_EQ(out(), "No container has values of a class that does not exist any more.\n");
  node_.classes.push_back({.offered = {.type = {.name = "oom"},
                                       .rules = std::make_shared<ClassTypeRules>(),
                                       .is_retired = true},
                           .left = {"container main of pod shop/web keeps values of class a: b"}});
  EXPECT_EQ(Run({"classes", "--left"}), kDone) << err();
  EXPECT_EQ(out(),
            "TYPE   LEFT\noom    container main of pod shop/web keeps values of class a: b\n");
  EXPECT_EQ(Run({"classes"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("not in class-types any more"));
}

TEST_F(QrmctlTest, TopologyOfAnIdleNodeHasNoUse) {
  Serve();
  EXPECT_EQ(Run({"topology"}), kDone) << err();
  EXPECT_EQ(out(), DescribeMachine(machine_));
}

TEST_F(QrmctlTest, TopologyAsJsonIsTheMachineAndItsUse) {
  Serve();
  AdmitTwoPods();
  EXPECT_EQ(Run({"topology", "-o", "json"}), kDone) << err();
  auto document = nlohmann::ordered_json::parse(out());
  ASSERT_EQ(document["use"].size(), 2u);
  EXPECT_EQ(document["use"][0]["containers"][0]["container"], "shop/db/main");
  document.erase("use");
  EXPECT_EQ(document, MachineToJson(machine_));
}

TEST_F(QrmctlTest, TopologyReadsADescribedMachineWithoutQrmd) {
  const std::string description = "package:2 [numa] core:4 pu:2";
  const auto machine = Discover({MachineSource::Kind::kSynthetic, description});
  ASSERT_TRUE(machine.ok());
  EXPECT_EQ(Run({"topology", "--synthetic", description}), kDone) << err();
  EXPECT_EQ(out(), DescribeMachine(*machine));
  EXPECT_EQ(Run({"topology", "--synthetic", description, "-o", "json"}), kDone) << err();
  EXPECT_EQ(nlohmann::ordered_json::parse(out()), MachineToJson(*machine));
}

TEST_F(QrmctlTest, TopologyIsAPictureForSvg) {
  Serve();
  AdmitTwoPods();
  EXPECT_EQ(Run({"topology", "-o", "svg"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("<title>CPU 1, core 1: shop/db/main</title>"));
  EXPECT_EQ(Run({"topology", "--synthetic", "numa:1 core:1 pu:1", "-o", "svg"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("<title>CPU 0, core 0: free</title>"));
  EXPECT_EQ(Run({"pods", "-o", "svg"}), kMisuse);
}

TEST_F(QrmctlTest, TopologyFailsForAMachineItCannotRead) {
  EXPECT_EQ(Run({"topology", "--xml", dir_ / "none.xml"}), kFailed);
  EXPECT_EQ(err(), "qrmctl topology: cannot read machine " + (dir_ / "none.xml") +
                       ": there is no such file; name an XML file that lstopo wrote\n");
  EXPECT_EQ(Run({"topology", "--xml", "a", "--fsroot", "b"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("one machine at a time"));
}

TEST_F(QrmctlTest, ExplainPrintsTheDecisionStepByStep) {
  node_.decisions.push_back({.key = {"uid-db", "main"},
                             .pod_namespace = "shop",
                             .pod_name = "db",
                             .time = std::chrono::system_clock::from_time_t(1763690400),
                             .admitted = true,
                             .json = R"j({"pod":"shop/db","result":"admitted",
                   "requests":{"cpu":{"amount":2,"source":"estimate"},
                               "memory":{"amount":2147483648,"source":"pods-api"}},
                   "policy":"best-effort",
                   "hints":{"cpu":[{"nodes":[0],"preferred":true},{"nodes":[0,1],"preferred":false}],
                            "memory":"no preference"},
                   "merged":{"cpu":{"nodes":[0],"preferred":true}},
                   "merge_reasons":["memory constrains nothing"],
                   "allocations":{"cpu":{"property":"CpusetCpus","value":"1-2","quantity":2,
                                         "exclusive":true,
                                         "decided_by":"rules[0] (config.yaml:7)"}},
                   "steps":[{"step":"hints","microseconds":412},
                            {"step":"commit","microseconds":90}]})j"});
  Serve();
  EXPECT_EQ(Run({"explain", "db"}), kDone) << err();
  EXPECT_EQ(out(),
            "shop/db container main: admitted at 2025-11-21T02:00:00Z\n"
            "  Asked\n"
            "    cpu:      2 (from estimate)\n"
            "    memory:   2Gi (from pods-api)\n"
            "  Hints\n"
            "    cpu:      node 0 preferred; node 0,1\n"
            "    memory:   no preference\n"
            "  Merged by policy best-effort\n"
            "    cpu:   node 0 preferred\n"
            "  Reasons\n"
            "    memory constrains nothing\n"
            "  Given\n"
            "    cpu:   2 CpusetCpus=1-2 (exclusive), by rules[0] (config.yaml:7)\n"
            "  Took\n"
            "    hints 412 us, commit 90 us\n");
}

// A decision about a container.
checkpoint::DecisionTrace Decision(const std::string& json) {
  return {.key = {"uid-db", "main"},
          .pod_namespace = "shop",
          .pod_name = "db",
          .time = std::chrono::system_clock::from_time_t(1763690400),
          .admitted = true,
          .json = json};
}

// It has `now`.
checkpoint::Change Values(const std::string& now) {
  checkpoint::Change change = test::Admit(test::SamplePod("db", "shop"), "main", {});
  change.put_containers[0].record.applied = {{"CpusetCpus", now}};
  return change;
}

TEST_F(QrmctlTest, ExplainShowsWhatWasAppliedAtTheCreation) {
  node_.decisions = {Decision(R"({"applied":{"CpusetCpus":"1-2"}})")};
  Serve();
  snapshots_.Apply(Values("1-2"));
  EXPECT_EQ(Run({"explain", "db"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("  Applied last\n    CpusetCpus=1-2, at its creation, "
                               "2025-11-21T02:00:00Z\n"));
}

TEST_F(QrmctlTest, ExplainShowsWhenAnUpdateWasApplied) {
  node_.updated[{"uid-db", "main"}] = std::chrono::system_clock::from_time_t(1763690460);
  node_.decisions = {Decision(R"({"moment":"after the fact"})")};
  Serve();
  snapshots_.Apply(Values("3"));
  EXPECT_EQ(Run({"explain", "db"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("  Decided after the container was there\n"));
  EXPECT_THAT(out(), HasSubstr("    CpusetCpus=3, by an update at 2025-11-21T02:01:00Z\n"));
}

TEST_F(QrmctlTest, ExplainShowsThatAPodWasAlignedAsAWhole) {
  node_.decisions = {Decision(R"({"policy":"restricted","scope":"pod",
                                             "merged":{"cpu":{"nodes":[0],"preferred":true}}})")};
  Serve();
  snapshots_.Apply(Values("3"));
  EXPECT_EQ(Run({"explain", "db"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("  Merged by policy restricted for the whole pod\n"));
}

TEST_F(QrmctlTest, ExplainShowsWhatTheCommitTookAsTheLastStep) {
  node_.decisions = {Decision(R"({"steps":[{"step":"hints","microseconds":412}]})")};
  node_.decisions[0].commit = std::chrono::microseconds(90);
  Serve();
  snapshots_.Apply(Values("3"));
  EXPECT_EQ(Run({"explain", "db"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("  Took\n    hints 412 us, commit 90 us\n"));
  EXPECT_EQ(Run({"explain", "db", "-o", "json"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("\"step\": \"commit\""));
}

TEST_F(QrmctlTest, ExplainShowsUpdatesThatAnEarlierDaemonMade) {
  node_.decisions = {Decision(R"({"applied":{"CpusetCpus":"1-2"}})")};
  Serve();
  snapshots_.Apply(Values("3"));
  EXPECT_EQ(Run({"explain", "db"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("    CpusetCpus=3, by an update before qrmd started\n"));
}

TEST_F(QrmctlTest, ExplainOfARejectedPodSaysWhyStepByStep) {
  node_.decisions.push_back({.key = {"uid-db", "main"},
                             .pod_namespace = "shop",
                             .pod_name = "db",
                             .time = std::chrono::system_clock::from_time_t(1763690400),
                             .json = R"({"result":"rejected",
                   "message":"cannot admit container main: no NUMA node fits",
                   "requests":{"nic":{"amount":9,"source":"pods-api","as":"net","times":0.001}},
                   "policy":"single-numa-node",
                   "hints":{"cpu":[{"nodes":[0,1],"preferred":true}],"memory":"impossible"},
                   "merge_reasons":["cpu: node 0,1 is wider than one node"],
                   "steps":[{"step":"hints","microseconds":412}]})"});
  Serve();
  EXPECT_EQ(Run({"explain", "db"}), kDone) << err();
  EXPECT_EQ(out(),
            "shop/db container main: rejected at 2025-11-21T02:00:00Z\n"
            "  cannot admit container main: no NUMA node fits\n"
            "  Asked\n"
            "    nic:   9 (from pods-api, asked for as net, times 0.001)\n"
            "  Hints\n"
            "    cpu:      node 0,1 preferred\n"
            "    memory:   impossible\n"
            "  Reasons\n"
            "    cpu: node 0,1 is wider than one node\n"
            "  Took\n"
            "    hints 412 us\n");
}

TEST_F(QrmctlTest, RefusalsListsRejectedContainersAndWhy) {
  Serve();
  EXPECT_EQ(Run({"refusals"}), kDone);
  EXPECT_EQ(out(), "There are no recent rejections.\n");
  node_.decisions.push_back(
      {.key = {"uid-web", "main"},
       .pod_namespace = "shop",
       .pod_name = "web",
       .time = std::chrono::system_clock::from_time_t(7),
       .json = R"({"result": "rejected", "message": "no CPU", "equal_ones_before": 40})"});
  EXPECT_EQ(Run({"refusals"}), kDone) << err();
  EXPECT_EQ(out(),
            "LAST                   TIMES   NAMESPACE   POD   CONTAINER   WHY\n"
            "1970-01-01T00:00:07Z   41      shop        web   main        no CPU\n");
  EXPECT_EQ(Run({"refusals", "--since", "1h30m"}), kDone);
  EXPECT_EQ(out(), "No container was rejected in the last 1h30m.\n");
  EXPECT_EQ(Run({"refusals", "--since", "yesterday"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("\"yesterday\" is not a duration; write one such as 10m or 2h"));
}

TEST_F(QrmctlTest, ExplainShowsADecisionItCannotReadAsItIs) {
  node_.decisions.push_back({.key = {"uid-db", "main"},
                             .pod_namespace = "shop",
                             .pod_name = "db",
                             .json = "no json at all"});
  Serve();
  EXPECT_EQ(Run({"explain", "db"}), kDone);
  EXPECT_THAT(out(), HasSubstr(" container main: rejected at "));
  EXPECT_THAT(out(), HasSubstr("  no json at all\n"));
}

TEST_F(QrmctlTest, ExplainNeedsAPod) {
  EXPECT_EQ(Run({"explain"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("POD is required"));
}

}  // namespace
}  // namespace qrm::manager::cli::qrmctl_placement_test
