// Reload by SIGHUP and without it.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/proto/qrm/v1/policy.grpc.pb.h"
#include "test/e2e/node.h"
#include "test/e2e/process.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"

namespace qrm::test::reload_test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kMachine[] = "machine: \"synthetic:package:1 [numa] core:4 pu:1\"\n";

class ReloadTest : public testing::Test {
 protected:
  void SetUp() override { Start(""); }
  void Start(const std::string& keys) {
    Write(keys);
    node_ = MakeNode();
    ASSERT_TRUE(IsOk(node_->Start(1)));
  }
  std::unique_ptr<Node> MakeNode() const {
    return std::make_unique<Node>(
        Node::Options{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
                      .work_dir = dir_ / "node",
                      .config = dir_ / "qrmd.yaml",
                      .nri_socket = runtime_.nri_socket(),
                      .cri_socket = runtime_.cri_socket(),
                      .builtin_plugins = builtin_plugins_,
                      .reconcile_period = "60s"});
  }
  void Write(const std::string& keys) { std::ofstream(dir_ / "qrmd.yaml") << kMachine << keys; }
  std::string Log(const std::string& program) const {
    std::ifstream file(dir_ / ("node/logs/" + program + ".log"));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  /// Until the program has logged `line`.
  ::testing::AssertionResult Logs(const std::string& line, const std::string& program = "qrmd") {
    if (Await([&] { return Log(program).find(line) != std::string::npos; })) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << Log(program);
  }

  std::string builtin_plugins_ = "memory";
  TempDir dir_;
  SimulatedRuntime runtime_{dir_.path()};
  std::unique_ptr<Node> node_;
};

TEST(SimulateTest, AnotherMachineThanThisOneNeedsTheFlag) {
  const std::string bin = std::filesystem::canonical("/proc/self/exe").parent_path();
  const TempDir dir;
  std::ofstream(dir / "qrmd.yaml") << kMachine;
  const std::string file = "--config=" + dir / "qrmd.yaml";
  EXPECT_THAT(MessageOf(RunCommand({bin + "/qrmd", file, "--check-config"}).status()),
              AllOf(HasSubstr("cannot use machine synthetic:package:1"), HasSubstr("--simulate")));
  EXPECT_TRUE(IsOk(RunCommand({bin + "/qrmd", "--simulate", file, "--check-config"}).status()));
  const std::string flag = "--machine=synthetic:package:1 [numa] core:4 pu:1";
  EXPECT_FALSE(RunCommand({bin + "/qrmd", flag, "--check-config"}).ok());
  EXPECT_TRUE(IsOk(RunCommand({bin + "/qrmd", "--check-config"}).status())) << "this machine";
}

class JsonLogTest : public ReloadTest {
 protected:
  void SetUp() override { Start("log-format: json\n"); }
};

/// With the type oom, whose class first is open to every pod.
class ReloadClassesTest : public ReloadTest {
 protected:
  void SetUp() override {
    Define("{first: {oom_score_adj: 999}}");
    Start(Types("{namespaces: [\"*\"]}"));
  }
  void Define(const std::string& classes) {
    std::ofstream(dir_ / "fresh.yaml") << "classes: " << classes << '\n';
    std::filesystem::rename(dir_ / "fresh.yaml", dir_ / "oom.yaml");
  }
  std::string Types(const std::string& rule) const {
    return "qos-classes: true\nclass-types: {oom: {config-file: " + (dir_ / "oom.yaml") +
           ", classes: {first: " + rule + "}}}\n";
  }
  static PodSpec Pod(const std::string& name, const std::string& asks) {
    PodSpec pod{.name = name, .uid = "uid-" + name, .container = {.name = "main"}};
    pod.annotations["oom.resources.alpha.kubernetes.io/default"] = asks;
    return pod;
  }
  std::string Classes() const { return node_->Qrmctl({"classes"}).value_or(""); }
};

/// With the built-in cpu plugin, and a pool of its keys.
class ReloadPluginsTest : public ReloadTest {
 protected:
  static constexpr char kWeb[] = "web: {cpus: \"3\", roles: [web]}";

  void SetUp() override {
    builtin_plugins_ = "cpu";
    Start(Keys(""));
  }
  static std::string Keys(const std::string& roles, const std::string& pools = kWeb) {
    return "plugins: {cpu: {pools: {" + pools + "}, roles: {" + roles + "}}}\n";
  }
  static PodSpec Pod(const std::string& name, const std::string& role) {
    PodSpec pod{
        .name = name, .uid = "uid-" + name, .container = {.name = "main", .milli_cpus = 1000}};
    pod.labels["katalyst.kubewharf.io/pod_role"] = role;
    return pod;
  }
  std::string CpusOf(const std::string& pod) const {
    return runtime_.RunOptions(pod)["linux_container_resources"].value("cpusetCpus", "");
  }
};

/// A mounted ConfigMap: the file is a link into a directory behind a link that is swapped.
class ReloadMountTest : public ReloadPluginsTest {
 protected:
  void SetUp() override {
    builtin_plugins_ = "cpu";
    Mount("first", Keys(""));
    std::filesystem::create_symlink("..data/qrmd.yaml", dir_ / "qrmd.yaml");
    node_ = MakeNode();
    ASSERT_TRUE(IsOk(node_->Start(1)));
  }
  /// As kubelet's AtomicWriter does.
  void Mount(const std::string& version, const std::string& keys) {
    std::filesystem::create_directory(dir_ / version);
    std::ofstream(dir_ / (version + "/qrmd.yaml")) << kMachine << keys;
    std::filesystem::create_symlink(version, dir_ / "..data_tmp");
    std::filesystem::rename(dir_ / "..data_tmp", dir_ / "..data");
  }
};

TEST_F(ReloadPluginsTest, AnAddedRoleCountsForTheNextContainerAndNoOtherMoves) {
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", "web"))));
  ASSERT_EQ(CpusOf("web"), "3");
  Write(Keys("db: {}"));
  ::kill(node_->daemon_pid(), SIGHUP);
  ASSERT_TRUE(Logs("\"configuration changed\" key=plugins"));
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("db", "db"))));
  EXPECT_EQ(CpusOf("db"), "0");
  ASSERT_TRUE(IsOk(node_->Reconcile()));
  EXPECT_EQ(CpusOf("web"), "3");
}

TEST_F(ReloadPluginsTest, PoolOfOtherCpusTakesItsContainersAlong) {
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", "web"))));
  Write(Keys("", "web: {cpus: \"1-2\", roles: [web]}"));
  EXPECT_TRUE(Await([&] { return CpusOf("web") == "1-2"; })) << Log("qrmd");
}

TEST_F(ReloadPluginsTest, PolicyDiffShowsContainersThatWouldMoveAndMovesNone) {
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", "web"))));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("idle", ""))));
  const std::string next = dir_ / "next.yaml";
  std::ofstream(next) << kMachine << "topology-policy: restricted\n"
                      << Keys("", "web: {cpus: \"1-2\", roles: [web]}");
  const std::string shown = node_->Qrmctl({"policy", "diff", next}).value_or("");
  EXPECT_THAT(shown, AllOf(HasSubstr("plugins"), HasSubstr("at the next start"),
                           ContainsRegex("web +cpu +3 +1-2"),
                           ContainsRegex("default/web +main +cpu +3 +1-2"),
                           ContainsRegex("default/idle +main +cpu +0-2 +0,3")));
  EXPECT_THAT(node_->Qrmctl({"policy", "check", next}).value_or(""),
              HasSubstr("containers that move: 2"));
  ASSERT_TRUE(IsOk(node_->Reconcile()));
  EXPECT_EQ(CpusOf("web"), "3");
  std::ofstream(next) << kMachine << Keys("", "web: {cpus: \"0-3\", roles: [web]}");
  const auto refused = node_->Qrmctl({"policy", "check", next});
  EXPECT_THAT(MessageOf(refused.status()), HasSubstr("leave no CPU"));
  EXPECT_THAT(node_->Qrmctl({"policy", "show"}).value_or(""), HasSubstr("qrmd.yaml:2"));
}

TEST_F(ReloadPluginsTest, TextThatIsTooLargeForAConfigurationIsNotRead) {
  const auto stub = v1::Policy::NewStub(grpc::CreateChannel("unix:" + (dir_ / "node/control.sock"),
                                                            grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::TryConfigurationRequest request;
  request.set_name("large.yaml");
  request.set_text(std::string(300000, '#'));
  v1::TryConfigurationResponse response;
  EXPECT_THAT(stub->TryConfiguration(&context, request, &response).error_message(),
              HasSubstr("cannot try large.yaml: it has 300000 bytes"));
}

TEST_F(ReloadPluginsTest, WhatAPluginRejectsChangesNothingAndStatusSaysSo) {
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", "web"))));
  Write("log-level: debug\n" + Keys("db: {}", "web: {cpus: \"0-3\", roles: [web]}"));
  ::kill(node_->daemon_pid(), SIGHUP);
  ASSERT_TRUE(Logs("configuration rejected; the previous one stays in force"));
  EXPECT_THAT(Log("qrmd"), AllOf(HasSubstr("qrmd.yaml:3: "), Not(HasSubstr("key=log-level"))));
  EXPECT_THAT(node_->Qrmctl({"status"}).value_or(""),
              HasSubstr("the configuration file is rejected; the previous one stays in force"));
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("db", "db"))));
  EXPECT_EQ(CpusOf("db"), "0-2") << "there is no such role";
  EXPECT_EQ(CpusOf("web"), "3");
  Write(Keys(""));
  EXPECT_TRUE(Await([&] {
    return node_->Qrmctl({"status"}).value_or("file is rejected").find("file is rejected") ==
           std::string::npos;
  }));
}

TEST_F(ReloadMountTest, ReplacedFileIsReadWithoutASignal) {
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", "web"))));
  Mount("second", Keys("", "web: {cpus: \"2\", roles: [web]}"));
  EXPECT_TRUE(Await([&] { return CpusOf("web") == "2"; })) << Log("qrmd");
}

TEST_F(ReloadMountTest, HalfOfAFileIsRejectedAndTheWholeIsTaken) {
  const std::string whole = Keys("", "web: {cpus: \"2\", roles: [web]}");
  Mount("second", whole.substr(0, whole.size() / 2));
  ASSERT_TRUE(Logs("configuration rejected; the previous one stays in force"));
  ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("web", "web"))));
  EXPECT_EQ(CpusOf("web"), "3");
  std::ofstream(dir_ / "second/qrmd.yaml") << kMachine << whole;
  EXPECT_TRUE(Await([&] { return CpusOf("web") == "2"; })) << Log("qrmd");
}

TEST_F(ReloadTest, LogLevelFollowsTheFile) {
  Write("log-level: debug\n");
  ::kill(node_->daemon_pid(), SIGHUP);
  EXPECT_TRUE(Logs("\"configuration changed\" key=log-level from=info to=debug"));
  Write("log-level: error\n");
  ::kill(node_->daemon_pid(), SIGHUP);
  EXPECT_TRUE(Logs("\"configuration changed\" key=log-level from=debug to=error"));
}

// The driver does not run, which is the rejection of a namespace that may ask for it.
TEST_F(ReloadTest, ANamespaceIsOpenedForADriverAndClosedWhileQrmdRuns) {
  const PodSpec pod{.name = "web",
                    .uid = "uid-web",
                    .annotations = {{"cci.qrm.io/driver", "fast"}},
                    .container = {.milli_cpus = 1000, .memory_bytes = 1 << 20}};
  std::ofstream(dir_ / "pod.json") << R"({"apiVersion": "v1", "kind": "Pod",
             "metadata": {"name": "dry", "annotations": {"cci.qrm.io/driver": "fast"}},
             "spec": {"containers": [{"name": "main",
                                      "resources": {"requests": {"cpu": "1"}}}]}})";
  const auto become = [&](const std::string& keys, const std::string& refusal) {
    Write(keys);
    ::kill(node_->daemon_pid(), SIGHUP);
    return Await([&] {
             return MessageOf(runtime_.RunPod(pod)).find(refusal) != std::string::npos;
           }) &&
           Await([&] {
             const auto dry = node_->Qrmctl({"admit", "--dry-run", "-f", dir_ / "pod.json"});
             return (dry.ok() ? *dry : MessageOf(dry.status())).find(refusal) != std::string::npos;
           });
  };
  const std::string closed = "does not allow compute driver fast in namespace default";
  const std::string open = "compute driver fast is not registered";
  EXPECT_TRUE(become("# none\n", closed));
  EXPECT_TRUE(become("compute-drivers: {fast: {namespaces: [default]}}\n", open));
  EXPECT_TRUE(become("", closed));
  EXPECT_TRUE(become("permissions: [{namespaces: [default], drivers: [fast]}]\n", open));
  EXPECT_THAT(node_->Qrmctl({"permissions", "--namespace", "default"}).value_or(""),
              HasSubstr("fast"));
}

TEST_F(ReloadTest, ChangedFileIsReadWithoutASignal) {
  Write("log-level: debug\n");
  EXPECT_TRUE(Logs("\"configuration changed\" key=log-level from=info to=debug"));
}

TEST_F(ReloadClassesTest, PermissionForAClassFollowsTheFile) {
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("web", "first"))));
  Write(Types("{capacity: 1, namespaces: [\"*\"]}"));
  ::kill(node_->daemon_pid(), SIGHUP);
  EXPECT_TRUE(Logs("\"configuration changed\" key=class-types"));
  EXPECT_THAT(MessageOf(runtime_.RunPod(Pod("db", "first"))),
              HasSubstr("the class is full (capacity 1)"));
}

TEST_F(ReloadClassesTest, TypesThatComeOrGoWaitForAStartAndNothingChanges) {
  Write("qos-classes: true\nclass-types: {lanes.example.com: {}}\n");
  ::kill(node_->daemon_pid(), SIGHUP);
  EXPECT_TRUE(Logs("type oom cannot be added or removed while qrmd runs; restart qrmd"));
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("web", "first"))));
}

TEST_F(ReloadClassesTest, DefinitionsAreReadAtOnceUnlessAClassInUseIsMissing) {
  EXPECT_TRUE(IsOk(runtime_.RunPod(Pod("web", "first"))));
  Define("{first: {oom_score_adj: 777}, next: {}}");
  ::kill(node_->daemon_pid(), SIGHUP);
  EXPECT_TRUE(Await([&] { return Classes().find("oom_score_adj 777") != std::string::npos; }));
  Define("{next: {oom_score_adj: 888}}");
  ::kill(node_->daemon_pid(), SIGHUP);
  EXPECT_TRUE(Logs("it lacks class first, which is in use"));
  EXPECT_THAT(Classes(), AllOf(HasSubstr("oom_score_adj 777"), Not(HasSubstr("888"))));
}

TEST_F(ReloadTest, KeysThatNeedAStartAreNamed) {
  Write("topology-policy: restricted\n");
  ::kill(node_->daemon_pid(), SIGHUP);
  EXPECT_TRUE(Logs("key=topology-policy"));
  EXPECT_THAT(Log("qrmd"), HasSubstr("restart qrmd to apply the change"));
  EXPECT_EQ(node_->GetStatus()->topology_policy(), "best-effort");
  EXPECT_THAT(node_->Qrmctl({"status"}).value_or(""),
              HasSubstr("the key topology-policy of the configuration file waits for a restart"));
}

TEST_F(ReloadTest, FileThatCannotBeReadChangesNothing) {
  Write("log-level: loud\n");
  ::kill(node_->daemon_pid(), SIGHUP);
  EXPECT_TRUE(Logs("the previous one stays in force"));
  EXPECT_THAT(Log("qrmd"), HasSubstr("loud"));
  EXPECT_TRUE(IsOk(node_->GetStatus().status()));
}

// A slow disk or file.
TEST_F(ReloadTest, FileThatIsSlowToReadHoldsNoContainerUp) {
  const std::string fifo = dir_ / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::filesystem::create_hard_link(fifo, dir_ / "fresh");
  std::filesystem::rename(dir_ / "fresh", dir_ / "qrmd.yaml");
  int writer = -1;
  ASSERT_TRUE(Await([&] { return (writer = ::open(fifo.c_str(), O_WRONLY | O_NONBLOCK)) >= 0; }))
      << "no process reads it";
  EXPECT_TRUE(IsOk(runtime_.RunPod({.name = "web", .uid = "uid", .container = {.name = "main"}})));
  std::filesystem::remove(dir_ / "qrmd.yaml");
  Write("log-level: debug\n");
  ASSERT_GT(::dprintf(writer, "%s", kMachine), 0);
  ::close(writer);
  EXPECT_TRUE(Logs("key=log-level from=info to=debug"));
}

TEST_F(JsonLogTest, EachLineIsAnObject) {
  std::istringstream lines(Log("qrmd"));
  std::set<std::string> events;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(object.is_object()) << line;
    EXPECT_THAT(object.value("time", ""), StartsWith("20")) << line;
    EXPECT_THAT(object.value("level", ""), AnyOf("info", "warning")) << line;
    events.insert(object.value("event", ""));
  }
  EXPECT_TRUE(events.contains("serving"));
}

TEST_F(ReloadTest, PluginProcessReadsItsFileAtTheSignalAndWhenItChanged) {
  const auto write = [&](const std::string& cpus) {
    std::ofstream(dir_ / "cpu.yaml")
        << kMachine << "default-pool: web\npools: {web: {cpus: " << cpus << "}}\n";
  };
  write("3");
  ASSERT_TRUE(IsOk(node_->StartPlugin("cpu", "cpu", dir_ / "cpu.yaml")));
  const auto cpus = [&] {
    return runtime_.RunOptions("web")["linux_container_resources"].value("cpusetCpus", "");
  };
  ASSERT_TRUE(IsOk(runtime_.RunPod(
      {.name = "web", .uid = "uid-web", .container = {.name = "main", .milli_cpus = 1000}})));
  ASSERT_EQ(cpus(), "3");
  write("1-2");
  ::kill(node_->plugin_pid("cpu"), SIGHUP);
  EXPECT_TRUE(Await([&] { return cpus() == "1-2"; })) << Log("cpu");
  write("9");
  EXPECT_TRUE(Logs("plugin's configuration rejected; the previous one stays in force", "cpu"));
  write("0");
  EXPECT_TRUE(Await([&] { return cpus() == "0"; })) << Log("cpu");
}

}  // namespace
}  // namespace qrm::test::reload_test
