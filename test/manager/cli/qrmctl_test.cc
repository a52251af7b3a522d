// qrmctl against a control server: what it prints, where, and how it exits.
#include <fstream>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "checkpoint/store.h"
#include "manager/cli/command.h"
#include "manager/control/control_server.h"
#include "manager/state_lock.h"
#include "test/support/fake_node_services.h"
#include "test/support/fake_plugins.h"
#include "test/support/fake_snapshots.h"
#include "test/support/sample_node.h"
#include "test/support/temp_dir.h"
#include "topology/describe.h"
#include "topology/discovery.h"

namespace qrm::manager::cli {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using test::Admit;
using test::kGiB;
using test::NodeMemory;
using test::OwnCpus;
using test::SamplePod;
using test::SharedCpus;
using testing::HasSubstr;
using testing::StartsWith;

class QrmctlTest : public testing::Test {
 protected:
  void Serve() {
    const Status started = server_.Start(socket_);
    ASSERT_TRUE(started.ok()) << started;
  }

  /// Runs qrmctl with its socket; the exit code.
  int Run(Args args) {
    args.insert(args.end(), {"--control-socket", socket_});
    return RunAsTyped(args);
  }
  int RunAsTyped(const Args& args) {
    out_.str("");
    err_.str("");
    return RunQrmctl(args, out_, err_);
  }
  std::string out() const { return out_.str(); }
  std::string err() const { return err_.str(); }

  /// Two pods: one with CPUs of its own, memory and a NIC, one in a pool.
  void AdmitTwoPods() {
    checkpoint::PodMeta db = SamplePod("db", "shop");
    db.role = "storage";
    checkpoint::Change change =
        Admit(db, "main",
              {{"cpu", OwnCpus("1-2")},
               {"memory", NodeMemory({{0, 2 * kGiB}})},
               {"nic", {.quantity = 10, .envs = {{"AFFINITY_NIC_ADDR_IPV4", "10.0.0.1"}}}}});
    change.put_containers[0].record.requests = {{"cpu", 2},
                                                {"memory", static_cast<double>(2 * kGiB)}};
    change.put_containers[0].record.request_source = "estimate";
    change.put_containers[0].record.applied = {{"CpusetCpus", "1-2"}, {"CpusetMems", "0"}};
    snapshots_.Apply(change);
    snapshots_.Apply(Admit(SamplePod("web", "shop"), "main", {{"cpu", SharedCpus("3-7", 0.5)}}));
    node_.runtime_ids = {{{"uid-db", "main"}, "4f3c2b1a"}};
  }

  void SetUsualStatus() {
    const auto now = std::chrono::steady_clock::now();
    NodeStatus status;
    status.version = "1.2.3";
    status.started = now - hours(4) - minutes(7);
    status.runtime = {.runtime = {.name = "containerd", .version = "v1.7.24"},
                      .nri_connected = true,
                      .nri_connects = 1,
                      .last_sync = now - minutes(5) - seconds(12),
                      .cri_reachable = true};
    status.reconcile = {.period = std::chrono::milliseconds(3000),
                        .last = now - seconds(2),
                        .runs = 4920,
                        .updates = 3,
                        .failures = 1,
                        .last_problem = "cannot update container x: busy; will try again"};
    status.topology_policy = "best-effort";
    status.state_path = "/var/lib/qrm/state";
    status.warnings = {"node 1 has lost CPU 7: its containers moved"};
    node_.SetStatus(status);
  }

  test::TempDir dir_;
  const std::string socket_ = dir_ / "control.sock";
  test::FakeSnapshots snapshots_;
  test::FakePlugins plugins_;
  test::FakeNodeServices node_;
  const Machine machine_ = test::SampleMachine();
  ControlServer server_{snapshots_, plugins_, machine_, node_};
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(QrmctlTest, SaysWhatToTypeWithoutACommand) {
  EXPECT_EQ(RunAsTyped({}), kMisuse);
  EXPECT_EQ(out(), "");
  EXPECT_EQ(err(), "qrmctl: no command given; try: qrmctl status, or qrmctl --help\n");
}

TEST_F(QrmctlTest, NamesACommandThatItDoesNotHave) {
  EXPECT_EQ(RunAsTyped({"statsu"}), kMisuse);
  EXPECT_EQ(err(), "qrmctl: there is no command \"statsu\"; try: qrmctl --help\n");
}

TEST_F(QrmctlTest, HelpListsEachCommandAndEachCommandHasHelp) {
  EXPECT_EQ(RunAsTyped({"--help"}), kDone);
  const std::string help = out();
  for (const char* command :
       {"status", "plugins", "pods", "topology", "explain", "pool", "checkpoint"}) {
    EXPECT_THAT(help, HasSubstr(std::string("\n  ") + command + " "));
    EXPECT_EQ(RunAsTyped({command, "--help"}), kDone) << command;
    EXPECT_THAT(out(), HasSubstr(std::string("qrmctl ") + command)) << command;
    EXPECT_EQ(err(), "");
  }
}

TEST_F(QrmctlTest, FailsWithASentenceWhenQrmdDoesNotRun) {
  EXPECT_EQ(Run({"status"}), kFailed);
  EXPECT_EQ(out(), "");
  EXPECT_EQ(err(), "qrmctl status: cannot reach qrmd: nothing listens on " + socket_ +
                       "; start qrmd, or name its socket with --control-socket\n");
}

TEST_F(QrmctlTest, RefusesAnUnknownFormatAndOption) {
  EXPECT_EQ(Run({"status", "-o", "xml"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("\"xml\" is no format; use table, json or yaml"));
  EXPECT_EQ(Run({"status", "--colour"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("try: qrmctl status -o json, or qrmctl status --help"));
}

TEST_F(QrmctlTest, FindsItsSocketInTheEnvironment) {
  Serve();
  ASSERT_EQ(setenv("QRM_CONTROL_SOCKET", socket_.c_str(), 1), 0);
  EXPECT_EQ(RunAsTyped({"plugins"}), kDone) << err();
  unsetenv("QRM_CONTROL_SOCKET");
}

TEST_F(QrmctlTest, StatusPrintsASheet) {
  Serve();
  SetUsualStatus();
  AdmitTwoPods();
  EXPECT_EQ(Run({"status"}), kDone) << err();
  EXPECT_EQ(out(),
            "Ready:       yes\n"
            "Version:     1.2.3\n"
            "Up:          4h7m\n"
            "Admitted:    2 pods with 2 containers\n"
            "Policy:      best-effort\n"
            "State:       /var/lib/qrm/state\n"
            "Runtime:     containerd v1.7.24, CRI reachable\n"
            "NRI:         connected, 1 connect, 0 disconnects, synchronized 5m12s ago\n"
            "Reconcile:   every 3s, last 2s ago, 4920 runs, 3 updates, 1 failure\n"
            "  Problem:   cannot update container x: busy; will try again\n"
            "Warnings since start:\n"
            "  node 1 has lost CPU 7: its containers moved\n");
}

TEST_F(QrmctlTest, StatusTellsWhyItIsNotReady) {
  Serve();
  NodeStatus status;
  status.not_ready_reasons = {"the runtime is away"};
  node_.SetStatus(status);
  EXPECT_EQ(Run({"status"}), kDone);
  EXPECT_THAT(out(), StartsWith("Ready:       no\n"));
  EXPECT_THAT(out(), HasSubstr("Not ready because:\n  the runtime is away\n"));
}

TEST_F(QrmctlTest, PluginsPrintsATableOfLiveSuspectAndAwayOnes) {
  Serve();
  const auto now = std::chrono::steady_clock::now();
  plugins_.infos = {{.resource = "cpu",
                     .endpoint = "built-in",
                     .registered_by = RegisteredBy::kBuiltIn,
                     .live = true,
                     .registered_at = now - seconds(90)},
                    {.resource = "memory",
                     .endpoint = "/run/memory.sock",
                     .registered_by = RegisteredBy::kRegister,
                     .live = true,
                     .problem = "hint names node 9",
                     .registered_at = now - seconds(5)},
                    {.resource = "nic",
                     .endpoint = "/run/nic.sock",
                     .registered_by = RegisteredBy::kCheckpoint,
                     .problem = "has not registered yet"}};
  EXPECT_EQ(Run({"plugins"}), kDone) << err();
  EXPECT_EQ(
      out(),
      "RESOURCE   STATE     REGISTERED BY   AGE     ENDPOINT           PROBLEM\n"
      "cpu        live      built-in        1m30s   built-in           -\n"
      "memory     suspect   register        5s      /run/memory.sock   hint names node 9\n"
      "nic        away      checkpoint      never   /run/nic.sock      has not registered yet\n");
}

TEST_F(QrmctlTest, PodsPrintsARowPerContainer) {
  Serve();
  AdmitTwoPods();
  EXPECT_EQ(Run({"pods"}), kDone) << err();
  EXPECT_EQ(out(),
            "NAMESPACE   POD   ROLE      CONTAINER   TYPE   CPUS   MEMS   OTHER\n"
            "shop        db    storage   main        MAIN   1-2*   0      memory=2Gi,nic=10\n"
            "shop        web   -         main        MAIN   3-7    -      -\n");
}

TEST_F(QrmctlTest, PodsNamesWhatHasNoAmount) {
  Serve();
  snapshots_.Apply(Admit(SamplePod("web"), "main", {{"nic", {.envs = {{"A", "1"}}}}}));
  EXPECT_EQ(Run({"pods"}), kDone) << err();
  EXPECT_THAT(out(), testing::EndsWith("-      -      nic\n"));
  EXPECT_EQ(Run({"pods", "web"}), kDone) << err();
  EXPECT_THAT(out(), testing::Not(HasSubstr("Amount")));
}

TEST_F(QrmctlTest, PodsOfAnEmptyNodeSaysSo) {
  Serve();
  EXPECT_EQ(Run({"pods"}), kDone);
  EXPECT_EQ(out(), "No pod is admitted.\n");
}

TEST_F(QrmctlTest, PodsPrintsAllAboutOnePod) {
  Serve();
  AdmitTwoPods();
  EXPECT_EQ(Run({"pods", "shop/db"}), kDone) << err();
  EXPECT_EQ(out(),
            "Name:        db\n"
            "Namespace:   shop\n"
            "UID:         uid-db\n"
            "Role:        storage\n"
            "QoS class:   Guaranteed\n"
            "Containers:\n"
            "  main\n"
            "    Type:         MAIN\n"
            "    Runtime id:   4f3c2b1a\n"
            "    Requests:     cpu=2 memory=2Gi (from estimate)\n"
            "    Applied:      CpusetCpus=1-2 CpusetMems=0\n"
            "    cpu\n"
            "      Amount:       2\n"
            "      CpusetCpus:   1-2 (its own)\n"
            "    memory\n"
            "      Amount:       2Gi\n"
            "      CpusetMems:   0\n"
            "      By node:      node 0: 2Gi\n"
            "    nic\n"
            "      Amount:   10\n"
            "      Env:      AFFINITY_NIC_ADDR_IPV4=10.0.0.1\n");
}

TEST_F(QrmctlTest, PodsFailsForAPodThatIsNotThere) {
  Serve();
  EXPECT_EQ(Run({"pods", "shop/nobody"}), kFailed);
  EXPECT_EQ(err(),
            "qrmctl pods: cannot show pod shop/nobody: no admitted pod has that name or UID; "
            "qrmctl pods lists all\n");
}

TEST_F(QrmctlTest, JsonHasNumbersAndEveryKey) {
  Serve();
  EXPECT_EQ(Run({"pool", "get", "-o", "json"}), kFailed);
  plugins_.pools.emplace("cpu", std::vector<PoolInfo>{{.name = "online", .cpus = "0-3"}});
  EXPECT_EQ(Run({"pool", "get", "-o", "json"}), kDone) << err();
  EXPECT_EQ(out(), R"({
  "pools": [
    {
      "name": "online",
      "cpus": "0-3",
      "roles": [],
      "containers": 0
    }
  ]
}
)");
}

TEST_F(QrmctlTest, YamlQuotesWhatWouldReadAsAnotherType) {
  Serve();
  plugins_.pools.emplace("cpu",
                         std::vector<PoolInfo>{{.name = "online", .cpus = "3", .roles = {"web"}}});
  EXPECT_EQ(Run({"pool", "get", "-o", "yaml"}), kDone) << err();
  EXPECT_EQ(out(), R"(pools:
  - name: online
    cpus: "3"
    roles:
      - web
    containers: 0
)");
}

TEST_F(QrmctlTest, PoolGetPrintsATable) {
  Serve();
  plugins_.pools.emplace(
      "cpu", std::vector<PoolInfo>{
                 {.name = "online", .cpus = "0-3", .roles = {"web", "api"}, .containers = 2},
                 {.name = "offline", .cpus = "4-5,7"}});
  EXPECT_EQ(Run({"pool", "get"}), kDone) << err();
  EXPECT_EQ(out(),
            "POOL      CPUS    COUNT   CONTAINERS   ROLES\n"
            "online    0-3     4       2            web,api\n"
            "offline   4-5,7   3       0            -\n");
}

TEST_F(QrmctlTest, PoolSetChangesPoolsAndPrintsThem) {
  Serve();
  plugins_.pools.emplace("cpu", std::vector<PoolInfo>{{.name = "online", .cpus = "0-3"},
                                                      {.name = "offline", .cpus = "4-7"}});
  EXPECT_EQ(Run({"pool", "set", "online=0-1", "offline=2-7"}), kDone) << err();
  EXPECT_EQ(out(),
            "POOL      CPUS   COUNT   CONTAINERS   ROLES\n"
            "online    0-1    2       0            -\n"
            "offline   2-7    6       0            -\n");
}

TEST_F(QrmctlTest, PoolSetSaysWhichWordIsWrong) {
  const std::string hint =
      "; try: qrmctl pool set online=0-13,40-53 offline=14-39,54-79, or qrmctl pool set --help\n";
  EXPECT_EQ(Run({"pool", "set", "online"}), kMisuse);
  EXPECT_EQ(err(), "qrmctl pool set: \"online\" is not of the form NAME=CPUS" + hint);
  EXPECT_EQ(Run({"pool", "set", "a=1", "a=2"}), kMisuse);
  EXPECT_EQ(err(), "qrmctl pool set: pool a is named twice" + hint);
  EXPECT_EQ(Run({"pool", "set", "a=1-x"}), kMisuse);
  EXPECT_THAT(err(), StartsWith("qrmctl pool set: pool a: "));
  EXPECT_EQ(Run({"pool", "set"}), kMisuse);
  EXPECT_EQ(Run({"pool", "drop"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("there is no verb \"drop\""));
}

TEST_F(QrmctlTest, TopologyPrintsTheMapAndWhoUsesWhat) {
  Serve();
  AdmitTwoPods();
  EXPECT_EQ(Run({"topology"}), kDone) << err();
  EXPECT_EQ(out(), DescribeMachine(machine_) +
                       "use\n"
                       "  node 0: its own 1-2, shared 3, free 0, memory 2Gi\n"
                       "    CONTAINER       CPUS   MEMORY\n"
                       "    shop/db/main    1-2*   2Gi\n"
                       "    shop/web/main   3      -\n"
                       "  node 1: shared 4-7\n"
                       "    CONTAINER       CPUS   MEMORY\n"
                       "    shop/web/main   4-7    -\n");
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

TEST_F(QrmctlTest, TopologyFailsForAMachineItCannotRead) {
  EXPECT_EQ(Run({"topology", "--xml", dir_ / "none.xml"}), kFailed);
  EXPECT_THAT(err(), StartsWith("qrmctl topology: cannot "));
  EXPECT_EQ(Run({"topology", "--xml", "a", "--fsroot", "b"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("one machine at a time"));
}

TEST_F(QrmctlTest, ExplainPrintsTheDecisionStepByStep) {
  Serve();
  checkpoint::Change change;
  change.traces.push_back({.key = {"uid-db", "main"},
                           .pod_namespace = "shop",
                           .pod_name = "db",
                           .time = std::chrono::system_clock::from_time_t(1763690400),
                           .admitted = true,
                           .json = R"({"pod":"shop/db","result":"admitted",
                   "requests":{"cpu":{"amount":2,"source":"estimate"},
                               "memory":{"amount":2147483648,"source":"pods-api"}},
                   "policy":"best-effort",
                   "hints":{"cpu":[{"nodes":[0],"preferred":true},{"nodes":[0,1],"preferred":false}],
                            "memory":"no preference"},
                   "merged":{"cpu":{"nodes":[0],"preferred":true}},
                   "merge_reasons":["memory constrains nothing"],
                   "allocations":{"cpu":{"property":"CpusetCpus","value":"1-2","quantity":2,
                                         "exclusive":true}},
                   "steps":[{"step":"hints","microseconds":412},
                            {"step":"commit","microseconds":90}]})"});
  snapshots_.Apply(change);
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
            "    cpu:   2 CpusetCpus=1-2 (its own)\n"
            "  Took\n"
            "    hints 412 us, commit 90 us\n");
}

TEST_F(QrmctlTest, ExplainShowsADecisionItCannotReadAsItIs) {
  Serve();
  checkpoint::Change change;
  change.traces.push_back({.key = {"uid-db", "main"},
                           .pod_namespace = "shop",
                           .pod_name = "db",
                           .json = "no json at all"});
  snapshots_.Apply(change);
  EXPECT_EQ(Run({"explain", "db"}), kDone);
  EXPECT_THAT(out(), HasSubstr("not admitted"));
  EXPECT_THAT(out(), HasSubstr("  no json at all\n"));
}

TEST_F(QrmctlTest, ExplainNeedsAPod) {
  EXPECT_EQ(Run({"explain"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("POD is required"));
}

/// The state on disk, without a server.
class QrmctlCheckpointTest : public QrmctlTest {
 protected:
  QrmctlCheckpointTest() {
    const checkpoint::OpenedStore opened = checkpoint::OpenSqliteStore(state_);
    EXPECT_TRUE(
        opened.store->Commit(Admit(SamplePod("db", "shop"), "main", {{"cpu", OwnCpus("1-2")}}))
            .ok());
  }

  int RunOn(const std::string& directory, Args args) {
    args.insert(args.begin(), "checkpoint");
    args.insert(args.end(), {"--state-dir", directory});
    return RunAsTyped(args);
  }

  const std::string state_ = dir_ / "state";
};

TEST_F(QrmctlCheckpointTest, VerifyCountsASoundCheckpoint) {
  EXPECT_EQ(RunOn(state_, {"verify"}), kDone) << err();
  EXPECT_EQ(out(), state_ + "/checkpoint.db is sound: 1 pod with 1 container\n");
}

TEST_F(QrmctlCheckpointTest, VerifyFailsForADamagedCheckpoint) {
  std::ofstream(state_ + "/checkpoint.db") << "no database";
  EXPECT_EQ(RunOn(state_, {"verify"}), kFailed);
  EXPECT_THAT(err(), StartsWith("qrmctl checkpoint verify: cannot "));
}

TEST_F(QrmctlCheckpointTest, DumpPrintsWhatTheDiskSays) {
  EXPECT_EQ(RunOn(state_, {"dump"}), kDone) << err();
  EXPECT_EQ(out(),
            "NAMESPACE   POD   ROLE   CONTAINER   TYPE   CPUS   MEMS   OTHER\n"
            "shop        db    -      main        MAIN   1-2*   -      -\n");
}

TEST_F(QrmctlCheckpointTest, AnExportCanBeVerifiedAndImportedElsewhere) {
  const std::string file = dir_ / "kubelet_qrm_checkpoint";
  EXPECT_EQ(RunOn(state_, {"export", file}), kDone) << err();
  EXPECT_EQ(out(), "wrote 1 pod with 1 container to " + file + "\n");
  EXPECT_EQ(RunOn(state_, {"verify", file}), kDone) << err();
  EXPECT_EQ(out(), file + " is sound: 1 pod with 1 container\n");

  const std::string other = dir_ / "other";
  EXPECT_EQ(RunOn(other, {"import", file}), kDone) << err();
  EXPECT_EQ(out(), "imported 1 pod with 1 container into " + other + "/checkpoint.db\n");
  EXPECT_EQ(RunOn(other, {"dump", "uid-db"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("CpusetCpus:   1-2"));
}

TEST_F(QrmctlCheckpointTest, ExportToADashWritesTheFileToStandardOutput) {
  EXPECT_EQ(RunOn(state_, {"export", "-"}), kDone) << err();
  EXPECT_THAT(out(), StartsWith("{"));
}

TEST_F(QrmctlCheckpointTest, ImportRefusesWhileQrmdRuns) {
  const std::string file = dir_ / "kubelet_qrm_checkpoint";
  ASSERT_EQ(RunOn(state_, {"export", file}), kDone);
  const auto qrmd = StateLock::Take(state_);
  ASSERT_TRUE(qrmd.ok());
  EXPECT_EQ(RunOn(state_, {"import", file}), kFailed);
  EXPECT_THAT(err(), HasSubstr("uses it; stop that one"));
}

TEST_F(QrmctlCheckpointTest, ImportRefusesAFileThatIsNoCheckpoint) {
  const std::string file = dir_ / "wrong";
  std::ofstream(file) << "{}";
  EXPECT_EQ(RunOn(state_, {"import", file}), kFailed);
  EXPECT_EQ(RunOn(state_, {"import", dir_ / "none"}), kFailed);
  EXPECT_THAT(err(), HasSubstr("cannot read"));
}

TEST_F(QrmctlCheckpointTest, AnUnknownVerbSaysWhatToType) {
  EXPECT_EQ(RunAsTyped({"checkpoint"}), kMisuse);
  EXPECT_EQ(RunAsTyped({"checkpoint", "drop"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("there is no verb \"drop\"; try: qrmctl checkpoint verify"));
}

}  // namespace
}  // namespace qrm::manager::cli
