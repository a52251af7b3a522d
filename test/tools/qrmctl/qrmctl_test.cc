// qrmctl against a control server: what it prints, where, and how it exits.
#include <string>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include "api/base/errorf.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "manager/rpc/unix_server.h"
#include "test/tools/qrmctl/qrmctl_fixture.h"

namespace qrm::manager::cli::qrmctl_test {
namespace {

using std::chrono::seconds;
using test::Admit;
using test::SamplePod;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::StartsWith;

TEST_F(QrmctlTest, SaysWhatToTypeWithoutACommand) {
  EXPECT_EQ(RunAsTyped({}), kMisuse);
  EXPECT_EQ(out(), "");
  EXPECT_EQ(err(), "qrmctl: no command given; try: qrmctl status, or qrmctl --help\n");
}

TEST_F(QrmctlTest, NamesACommandThatItDoesNotHave) {
  EXPECT_EQ(RunAsTyped({"statsu"}), kMisuse);
  EXPECT_EQ(err(), "qrmctl: there is no command \"statsu\"; did you mean status?\n");
  EXPECT_EQ(RunAsTyped({"xylophone"}), kMisuse);
  EXPECT_EQ(err(), "qrmctl: there is no command \"xylophone\"; try: qrmctl --help\n");
}

TEST_F(QrmctlTest, HelpListsEachCommandAndEachCommandHasHelp) {
  EXPECT_EQ(RunAsTyped({"--help"}), kDone);
  const std::string help = out();
  for (const char* command :
       {"status", "plugins", "pods", "topology", "explain", "admit", "pool", "checkpoint"}) {
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

/// A qrmd that has few calls yet.
class OlderQrmd final : public v1::Control::Service {
  grpc::Status GetStatus(grpc::ServerContext*, const v1::GetStatusRequest*,
                         v1::GetStatusResponse* response) override {
    response->set_version("0.0.9");
    return grpc::Status::OK;
  }
};

TEST_F(QrmctlTest, NamesTheVersionOfAQrmdThatDoesNotHaveACall) {
  OlderQrmd older;
  UnixServer server({});
  ASSERT_TRUE(server.Start(socket_, {&older}).ok());
  EXPECT_EQ(Run({"events"}), kFailed);
  EXPECT_THAT(err(), StartsWith("qrmctl events: cannot ask qrmd 0.0.9: it does not have the call "
                                "/qrm.v1.Control/ListEvents of qrmctl "));
  EXPECT_EQ(Run({"permissions"}), kFailed) << "of a service that it does not have";
  EXPECT_THAT(err(), HasSubstr("cannot ask qrmd 0.0.9"));
  EXPECT_EQ(Run({"status"}), kDone) << err();
}

TEST_F(QrmctlTest, RejectsAnUnknownFormatAndOption) {
  EXPECT_EQ(Run({"status", "-o", "xml"}), kMisuse);
  EXPECT_THAT(
      err(),
      HasSubstr("\"xml\" is not a format; use table, wide, json, yaml or jsonpath=TEMPLATE"));
  EXPECT_EQ(Run({"status", "--colour"}), kMisuse);
  EXPECT_THAT(err(), HasSubstr("try: qrmctl status -o json, or qrmctl status --help"));
}

TEST_F(QrmctlTest, FindsItsSocketInTheEnvironment) {
  Serve();
  ASSERT_EQ(setenv("QRM_CONTROL_SOCKET", socket_.c_str(), 1), 0);
  EXPECT_EQ(RunAsTyped({"plugins"}), kDone) << err();
  unsetenv("QRM_CONTROL_SOCKET");
}

TEST_F(QrmctlTest, StatusPrintsALineForEachSubsystem) {
  Serve();
  SetUsualStatus();
  AdmitTwoPods();
  NodeStatus status = node_.Status();
  status.Degrade(Subsystem::kApiServer, "the API server is not reachable");
  status.publish = {.enabled = true, .reached = false};
  SetStatus(status);
  EXPECT_EQ(Run({"status"}), kDone) << err();
  EXPECT_EQ(
      out(),
      "Ready:       yes, degraded\n"
      "Version:     1.2.3\n"
      "Up:          4h7m\n"
      "Policy:      best-effort\n"
      "Mode:        NRI: containers are pinned before they start\n"
      "Reconcile:   every 3s, last 2s ago, 4920 runs, 3 updates, 1 failure\n"
      "  Problem:   cannot update container x: busy; will try again\n"
      "\n"
      "SUBSYSTEM    STATE      FOR    ABOUT                                 NEXT\n"
      "qrmd         ok         4h7m   version 1.2.3                         -\n"
      "runtime      ok         4h7m   containerd v1.7.24, CRI reachable     -\n"
      "NRI          ok         4h7m   connected, 1 connect, 0 disconnects   -\n"
      "kubelet      ok         4h7m   requests from kubelet's Pods API      -\n"
      "plugins      ok         4h7m   none                                  -\n"
      "drivers      ok         4h7m   none                                  -\n"
      "classes      ok         4h7m   none                                  -\n"
      "state        ok         4h7m   2 pods with 2 containers              -\n"
      "disk         ok         4h7m   /var/lib/qrm/state                    -\n"
      "API server   degraded   4h7m   not reachable                         kubectl get --raw "
      "/readyz\n"
      "cluster      ok         4h7m   0 writes, 0 events                    -\n"
      "Degraded because:\n"
      "  the API server is not reachable\n"
      "Warnings since start:\n"
      "  node 1 has lost CPU 7: its containers moved\n");
}

TEST_F(QrmctlTest, StatusPrintsASheetWhenItIsWideAndOfAnOlderQrmd) {
  Serve();
  SetUsualStatus();
  AdmitTwoPods();
  const std::string sheet =
      "Ready:       yes\n"
      "Version:     1.2.3\n"
      "Up:          4h7m\n"
      "Admitted:    2 pods with 2 containers\n"
      "Policy:      best-effort\n"
      "State:       /var/lib/qrm/state\n"
      "Runtime:     containerd v1.7.24, CRI reachable\n"
      "Mode:        NRI: containers are pinned before they start\n"
      "NRI:         connected, 1 connect, 0 disconnects, synchronized 5m12s ago\n"
      "Reconcile:   every 3s, last 2s ago, 4920 runs, 3 updates, 1 failure\n"
      "  Problem:   cannot update container x: busy; will try again\n";
  EXPECT_EQ(Run({"status", "-o", "wide"}), kDone) << err();
  EXPECT_THAT(out(), StartsWith(sheet + "\nSUBSYSTEM "));
  NodeStatus older = node_.Status();
  older.subsystems.clear();
  node_.SetStatus(older);
  EXPECT_EQ(Run({"status"}), kDone) << err();
  EXPECT_THAT(out(), StartsWith(sheet + "Warnings since start:\n"));
}

TEST_F(QrmctlTest, StatusShowsWhyItIsNotReady) {
  Serve();
  NodeStatus status;
  status.not_ready_reasons = {"the runtime is not running"};
  node_.SetStatus(status);
  EXPECT_EQ(Run({"status"}), kDone);
  EXPECT_THAT(out(), StartsWith("Ready:       no\n"));
  EXPECT_THAT(out(), HasSubstr("Not ready because:\n  the runtime is not running\n"));
}

TEST_F(QrmctlTest, StatusShowsThatContainersArePinnedLate) {
  Serve();
  NodeStatus status;
  status.runtime.mode = RuntimeMode::kObserver;
  status.degraded_reasons = {"containers are pinned after their creation: no NRI"};
  node_.SetStatus(status);
  EXPECT_EQ(Run({"status"}), kDone);
  EXPECT_THAT(out(), StartsWith("Ready:       yes, degraded\n"));
  EXPECT_THAT(out(),
              HasSubstr("Mode:        observer: containers are pinned after their creation\n"));
  EXPECT_THAT(out(), HasSubstr("Degraded because:\n  containers are pinned after"));
}

TEST_F(QrmctlTest, PluginsPrintsATableOfLiveSuspectAndNotRunningOnes) {
  Serve();
  SetUsualStatus();
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

TEST_F(QrmctlTest, PluginsSaysThatRequestsAreEstimated) {
  Serve();
  EXPECT_EQ(Run({"plugins"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("note: requests of pods are estimated from cgroup values"));
}

TEST_F(QrmctlTest, PluginsForgetReportsWhatItWouldDropAndDropsItWithYes) {
  Serve();
  node_.records = checkpoint::PluginRecords{.plugin = "cpu",
                                            .allocations = {{.key = {"uid-web", "main"},
                                                             .pod_namespace = "shop",
                                                             .pod_name = "web",
                                                             .resource = "cpu",
                                                             .allocation = test::OwnCpus("1-2")}},
                                            .pending_removals = {"uid-a", "uid-b"}};
  const std::string records =
      "NAMESPACE   POD   CONTAINER   RESOURCE   HOLDS\n"
      "shop        web   main        cpu        CpusetCpus=1-2\n"
      "Not yet notified of these removed pods: uid-a, uid-b\n";
  EXPECT_EQ(Run({"plugins", "forget", "cpu"}), kDone) << err();
  EXPECT_EQ(out(), records +
                       "Nothing has changed. To drop 1 allocation and 2 pending removals: qrmctl "
                       "plugins forget cpu --yes\n");
  EXPECT_EQ(Run({"plugins", "forget", "cpu", "--yes"}), kDone) << err();
  EXPECT_EQ(out(), records + "Forgot cpu: 1 allocation and 2 pending removals dropped.\n");
  EXPECT_THAT(node_.forgotten,
              ElementsAre(Pair("cpu", Forget::kOnlyTell), Pair("cpu", Forget::kApply)));
}

TEST_F(QrmctlTest, PluginsForgetFailsWithTheReasonAndNeedsAName) {
  Serve();
  node_.records = Errorf(StatusCode::kFailedPrecondition, "cannot forget plugin cpu: it is live");
  EXPECT_EQ(Run({"plugins", "forget", "cpu"}), kFailed);
  EXPECT_EQ(err(), "qrmctl plugins forget: cannot forget plugin cpu: it is live\n");
  EXPECT_EQ(Run({"plugins", "forget"}), kMisuse);
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
  snapshots_.Apply(
      Admit(SamplePod("web"), "main", {{"nic", ResourceAllocation{.envs = {{"A", "1"}}}}}));
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
            "      CpusetCpus:   1-2 (exclusive)\n"
            "    memory\n"
            "      Amount:       2Gi\n"
            "      CpusetMems:   0\n"
            "      By node:      node 0: 2Gi\n"
            "    nic\n"
            "      Amount:    10\n"
            "      Env:       AFFINITY_NIC_ADDR_IPV4=10.0.0.1\n"
            "      Devices:   /dev/vf0 (of /dev/vfio/7, rw)\n"
            "      Mounts:    /etc/nic (of /run/nic/eth0, read-only)\n");
}

TEST_F(QrmctlTest, PodsMarksMissingResourcesAndWhereTheRequestCameFrom) {
  Serve();
  AdmitTwoPods();
  node_.remarks[{"uid-db", "main"}] = {.implicit_requests = {"memory"},
                                       .runs_without = {"example.com/lane"}};
  EXPECT_EQ(Run({"pods"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("memory=2Gi,nic=10,example.com/lane!,incomplete\n"));
  EXPECT_EQ(Run({"pods", "shop/db"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("    Without:      example.com/lane\n"));
  EXPECT_THAT(out(), HasSubstr("cpu=2 (from estimate) memory=2Gi (from configuration)\n"));
}

TEST_F(QrmctlTest, PodsListsUnpinnedContainersWithStateAgeAndReason) {
  Serve();
  AdmitTwoPods();
  EXPECT_EQ(Run({"pods", "--unpinned"}), kDone) << err();
  EXPECT_EQ(out(), "All running containers have their allocations.\n");
  node_.remarks[{"uid-db", "main"}] = {.runs_without = {"example.com/lane"}};
  node_.unplaced = {{.key = {"uid-log", "main"},
                     .pod_namespace = "kube-system",
                     .pod_name = "log",
                     .runtime_id = "77aa",
                     .state = UnplacedState::kSkipped,
                     .why = "namespace kube-system is in skip-namespaces"},
                    {.key = {"uid-etl", "main"},
                     .pod_namespace = "shop",
                     .pod_name = "etl",
                     .state = UnplacedState::kRejected,
                     .why = "no CPU is free"}};
  node_.decisions = {{.key = {"uid-etl", "main"},
                      .time = std::chrono::system_clock::now() - std::chrono::seconds(3605)}};
  EXPECT_EQ(Run({"pods", "--unpinned"}), kDone) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("kube-system   log   main        skipped      -     namespace "
                                     "kube-system is in skip-namespaces\n"),
                           HasSubstr("shop          db    main        incomplete   -     it was "
                                     "created without example.com/lane; "),
                           HasSubstr("shop          etl   main        unpinned     1h    no CPU")));
  EXPECT_THAT(out(), testing::Not(HasSubstr("web")));
  EXPECT_EQ(Run({"pods"}), kDone) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("-      -      skipped\n"), HasSubstr("unpinned\n")));
  EXPECT_EQ(Run({"pods", "-o", "wide"}), kDone) << err();
  EXPECT_THAT(out(), AllOf(HasSubstr("AGE   STATE         WHY"), HasSubstr("1h    unpinned"),
                           HasSubstr("not running")));
  EXPECT_EQ(Run({"pods", "log"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("State:        skipped: namespace kube-system is in"));
  for (const char* view : {"top", "topology"}) {
    EXPECT_EQ(Run({view}), kDone) << err();
    EXPECT_THAT(out(), AllOf(HasSubstr("incomplete\n"),
                             HasSubstr("kube-system/log/main   skipped    namespace kube-system"),
                             HasSubstr("shop/etl/main          unpinned   no CPU is free\n")));
  }
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
  plugins_.pools.emplace("cpu", std::vector<sdk::Pool>{{.name = "online", .cpus = {0, 1, 2, 3}}});
  EXPECT_EQ(Run({"pool", "get", "-o", "json"}), kDone) << err();
  EXPECT_EQ(out(), R"({
  "pools": [
    {
      "name": "online",
      "cpus": "0-3",
      "roles": [],
      "containers": 0,
      "configured_cpus": "",
      "borrowed_cpus": "",
      "cpu_class": "",
      "class_problem": ""
    }
  ]
}
)");
}

TEST_F(QrmctlTest, YamlQuotesWhatWouldReadAsAnotherType) {
  Serve();
  plugins_.pools.emplace("cpu",
                         std::vector<sdk::Pool>{{.name = "online", .cpus = {3}, .roles = {"web"}}});
  EXPECT_EQ(Run({"pool", "get", "-o", "yaml"}), kDone) << err();
  EXPECT_EQ(out(), R"(pools:
  - name: online
    cpus: "3"
    roles:
      - web
    containers: 0
    configured_cpus: ""
    borrowed_cpus: ""
    cpu_class: ""
    class_problem: ""
)");
}

TEST_F(QrmctlTest, PoolGetOfAPluginThatIsNotRunningIsNoMatterOfTheUser) {
  Serve();
  EXPECT_EQ(Run({"pool", "get"}), kFailed);
  EXPECT_THAT(err(), HasSubstr("cannot ask plugin cpu: it is not registered; start it"));
  EXPECT_THAT(err(), Not(HasSubstr("try again")));
}

TEST_F(QrmctlTest, PoolGetPrintsATable) {
  Serve();
  plugins_.pools.emplace(
      "cpu", std::vector<sdk::Pool>{
                 {.name = "online", .cpus = {0, 1, 2, 3}, .roles = {"web", "api"}, .containers = 2},
                 {.name = "offline", .cpus = {4, 5, 7}}});
  EXPECT_EQ(Run({"pool", "get"}), kDone) << err();
  EXPECT_EQ(out(),
            "POOL      CPUS    COUNT   CONTAINERS   ROLES\n"
            "online    0-3     4       2            web,api\n"
            "offline   4-5,7   3       0            -\n");
}

TEST_F(QrmctlTest, PoolGetShowsWhatIsConfiguredWhereAPoolHasOtherCpus) {
  Serve();
  plugins_.pools.emplace("cpu", std::vector<sdk::Pool>{{.name = "online", .cpus = {0, 1}}});
  NodeStatus status;
  status.pools = {{.resource = "cpu",
                   .pool = "online",
                   .configured = CpuSet({0, 1, 2, 3}),
                   .cpus = CpuSet({0, 1})}};
  node_.SetStatus(status);
  EXPECT_EQ(Run({"pool", "get"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("online   0-1 (configured: 0-3)   2 "));
}

TEST_F(QrmctlTest, PoolGetDistinguishesItsCpusFromBorrowedOnes) {
  Serve();
  plugins_.pools.emplace(
      "cpu", std::vector<sdk::Pool>{{.name = "offline", .cpus = {0, 1}, .borrowed = {4, 5, 6}}});
  EXPECT_EQ(Run({"pool", "get"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("offline   0-1 (borrowed: 4-6)   2 "));
}

TEST_F(QrmctlTest, PoolGetReportsHowCpusAreTunedAndWhyTheyAreNot) {
  Serve();
  plugins_.pools.emplace("cpu",
                         std::vector<sdk::Pool>{{.name = "fast", .cpus = {0}, .cpu_class = "turbo"},
                                                {.name = "slow",
                                                 .cpus = {1},
                                                 .cpu_class = "saving",
                                                 .class_problem = "CPU 1 has no cpufreq"}});
  EXPECT_EQ(Run({"pool", "get"}), kDone) << err();
  EXPECT_THAT(out(), HasSubstr("fast   0 (class: turbo) "));
  EXPECT_THAT(out(), HasSubstr("slow   1 (class: saving, not in force) "));
  EXPECT_THAT(out(), HasSubstr("Pool slow is not tuned: CPU 1 has no cpufreq\n"));
  EXPECT_THAT(out(), Not(HasSubstr("Pool fast")));
}

TEST_F(QrmctlTest, PoolGetReportsAPluginThatIsSlowInQrmdsWords) {
  Serve();
  plugins_.pools.emplace("cpu", Errorf(StatusCode::kDeadlineExceeded, "plugin cpu is slow"));
  EXPECT_NE(Run({"pool", "get"}), kDone);
  EXPECT_EQ(err(), "qrmctl pool get: plugin cpu is slow\n");
}

TEST_F(QrmctlTest, PoolSetChangesPoolsAndPrintsThem) {
  Serve();
  plugins_.pools.emplace("cpu", std::vector<sdk::Pool>{{.name = "online", .cpus = {0, 1, 2, 3}},
                                                       {.name = "offline", .cpus = {4, 5, 6, 7}}});
  EXPECT_EQ(Run({"pool", "set", "online=0-1", "offline=2-7"}), kDone) << err();
  EXPECT_EQ(out(),
            "POOL      CPUS   COUNT   CONTAINERS   ROLES\n"
            "online    0-1    2       0            -\n"
            "offline   2-7    6       0            -\n");
}

TEST_F(QrmctlTest, PoolSetWarnsOfAPoolThatItEmptied) {
  Serve();
  plugins_.pools.emplace("cpu", std::vector<sdk::Pool>{{.name = "online", .cpus = {0, 1, 2, 3}}});
  EXPECT_EQ(Run({"pool", "set", "online="}), kDone);
  EXPECT_EQ(err(), "pool online has no CPUs now: containers of its roles are rejected\n");
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

}  // namespace
}  // namespace qrm::manager::cli::qrmctl_test
