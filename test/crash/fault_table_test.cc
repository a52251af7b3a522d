// Plays each fault of the table in docs/runbook.md, and compares what qrmd says with its row: in
// status, in /readyz, in a metric, in the log and in the events, each within 10 s.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <semaphore>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/ask_port.h"
#include "test/support/await.h"
#include "test/support/fake_api_server.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/scripted_plugin.h"
#include "test/support/small_disk.h"
#include "test/support/temp_dir.h"

namespace qrm::test::fault_table_test {
namespace {

namespace fs = std::filesystem;

constexpr char kPage[] = "docs/runbook.md";
constexpr char kWidget[] = "example.com/widget";
constexpr char kNodes[] = "/api/v1/nodes";
constexpr std::chrono::seconds kLimit{10};

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> Split(const std::string& text, std::string_view separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t end = 0; end != std::string::npos; begin = end + separator.size()) {
    end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
  }
  return parts;
}

/// What a row of the table says of a fault.
struct Row {
  std::string code;                   ///< of /readyz
  std::vector<std::string> sentence;  ///< its pieces, in order
  std::string metric;                 ///< with its value; without: it is not zero
};

/// `| FAULT | CODE | `SENTENCE` | `METRIC` |`, with … for what differs from node to node.
Row RowOf(const std::string& fault) {
  for (const std::string& line : Split(ReadFile(kPage), "\n")) {
    if (const auto cells = Split(line, " | "); cells.size() == 4 && cells[0] == "| " + fault) {
      const auto code = [](const std::string& cell) {
        const auto begin = cell.find('`') + 1;
        return cell.substr(begin, cell.rfind('`') - begin);
      };
      return {cells[1], Split(code(cells[2]), "…"), code(cells[3])};
    }
  }
  ADD_FAILURE() << kPage << " has no row for: " << fault;
  return {};
}

/// Whether a line of `text` with `word` has all `pieces`, in order.
bool HasLine(const std::string& text, const std::vector<std::string>& pieces,
             const std::string& word = "") {
  const std::vector<std::string> lines = Split(text, "\n");
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    std::size_t at = line.find(word);
    for (const std::string& piece : pieces) {
      at = at == std::string::npos ? at : line.find(piece, at);
      at = at == std::string::npos ? at : at + piece.size();
    }
    return at != std::string::npos;
  });
}

bool HasMetric(const std::string& text, const std::string& metric) {
  const std::vector<std::string> lines = Split(text, "\n");
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line == metric || (line.starts_with(metric + " ") && line != metric + " 0");
  });
}

/// A simulated machine of eight CPUs, whose qrmd is started by each test.
class FaultTableTest : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(kubelet_dir_);
    runtime_ = std::make_unique<SimulatedRuntime>(dir_.path());
  }
  void TearDown() override {
    ::unsetenv("LD_PRELOAD");
    ::unsetenv(variable_.c_str());
    runtime_.reset();
  }

  void Start(Node::Options options = {}, const std::string& keys = "") {
    std::ofstream(dir_ / "qrmd.yaml")
        << "machine: 'synthetic:package:2 [numa] core:4 pu:1'\nrequired-plugins: []\n"
        << "implicit-resources: [{resource: example.com/widget, roles: [widget]}]\n"
        << keys;
    options.bin_dir = fs::canonical("/proc/self/exe").parent_path();
    options.work_dir = dir_ / "node";
    options.config = dir_ / "qrmd.yaml";
    options.cri_socket = runtime_->cri_socket();
    options.nri_socket = options.nri_socket.empty() ? runtime_->nri_socket() : options.nri_socket;
    options.builtin_plugins = "cpu";
    options.reconcile_period = "1s";
    options.metrics_address = "127.0.0.1:0";
    options.probe_address = "127.0.0.1:0";
    options.flags.insert(options.flags.end(), {"--observer-grace=500ms", "--nri-retry-max=500ms",
                                               "--kubelet-state-dir=" + kubelet_dir_,
                                               "--kubelet-pods-socket=" + kubelet_socket_});
    node_ = std::make_unique<Node>(std::move(options));
    ASSERT_TRUE(IsOk(node_->Start(1)));
  }
  /// The next qrmd has the fault of `variable` once Begin was called.
  void Preload(const char* variable) {
    variable_ = variable;
    ::setenv(variable, fault_.c_str(), 1);
    ::setenv("LD_PRELOAD", QRM_BIN "/libqrm-bad-node.so", 1);
  }
  void Begin() const {
    ::unsetenv("LD_PRELOAD");  // qrmctl has no fault
    std::ofstream(fault_) << "now";
  }
  Status RunPod(const std::string& name, const std::string& role = "") {
    return runtime_->RunPod({.name = name,
                             .uid = "uid-" + name,
                             .labels = {{"katalyst.kubewharf.io/pod_role", role}},
                             .container = {.milli_cpus = 100, .memory_bytes = 1 << 20}});
  }
  std::unique_ptr<ScriptedPlugin> StartWidget(PluginScript script) {
    script.hints = [](const auto&, auto&) { return OkStatus(); };
    script.remove_pod = [](const auto&, auto&) { return OkStatus(); };
    script.identity = IdentityFor(kWidget);
    auto plugin = std::make_unique<ScriptedPlugin>(dir_ / "node/plugins/widget.sock", script);
    EXPECT_TRUE(IsOk(node_->WaitForPlugins(2)));
    return plugin;
  }
  void StartWithApiServer() {
    server_.Put(kNodes, {{"metadata", {{"name", "n1"}, {"uid", "u1"}}}});
    Start({}, "publish: [topology]\npublish-interval: 100ms\nnode-name: n1\nkubeconfig: " +
                  server_.WriteKubeconfig(dir_.path()) + "\n");
  }

  /// All signs of the fault are there in time.
  void ExpectTold(const std::string& fault) {
    const Row row = RowOf(fault);
    const auto limit = std::chrono::steady_clock::now() + kLimit;
    const auto in_time = [&](const auto& condition) {
      const auto left = limit - std::chrono::steady_clock::now();
      return Await(condition, std::chrono::duration_cast<std::chrono::milliseconds>(left));
    };
    EXPECT_TRUE(in_time([&] {
      return HasLine(node_->Qrmctl({"status"}).value_or(""), row.sentence);
    })) << "status: "
        << node_->Qrmctl({"status"}).value_or("");
    EXPECT_TRUE(in_time([&] {
      const std::string ready = AnswerOf(node_->probe_port(), "GET /readyz");
      return ready.starts_with("HTTP/1.1 " + row.code) && HasLine(ready, row.sentence);
    })) << AnswerOf(node_->probe_port(), "GET /readyz");
    EXPECT_TRUE(in_time([&] {
      return HasMetric(AnswerOf(node_->metrics_port(), "GET /metrics"), row.metric);
    })) << "metric: "
        << row.metric;
    const std::string mark = row.code == "503" ? "\"not ready\"" : "degraded";
    EXPECT_TRUE(in_time([&] {
      return HasLine(ReadFile(dir_ / "node/logs/qrmd.log"), row.sentence, mark);
    })) << "log: "
        << ReadFile(dir_ / "node/logs/qrmd.log");
    const auto events = [this] {
      return node_->Qrmctl({"events", "--type", "health"}).value_or("");
    };
    EXPECT_TRUE(in_time([&] { return HasLine(events(), row.sentence); })) << events();
  }

  TempDir dir_;
  const std::string kubelet_dir_ = dir_ / "kubelet";
  const std::string kubelet_socket_ = dir_ / "pods.sock";
  const std::string fault_ = dir_ / "fault";
  std::string variable_ = "QRM_NO_FAULT";
  FakeApiServer server_;
  std::unique_ptr<SimulatedRuntime> runtime_;
  std::unique_ptr<Node> node_;
};

TEST_F(FaultTableTest, RuntimeIsStopped) {
  Start();
  runtime_.reset();
  ExpectTold("the runtime is stopped");
}

TEST_F(FaultTableTest, RuntimeHangs) {
  Start();
  runtime_->DelayAnswers(std::chrono::seconds(5));
  ExpectTold("the runtime hangs");
}

TEST_F(FaultTableTest, CriIsOfAnotherRuntime) {
  Start();
  runtime_->SetCriRuntime("cri-o", "1.30.0");
  ExpectTold("`cri-socket` is of another runtime");
}

TEST_F(FaultTableTest, NriIsOff) {
  Start({.nri_socket = dir_ / "no-nri.sock", .mode = "observer"});
  ExpectTold("NRI is off");
}

TEST_F(FaultTableTest, KubeletIsAway) {
  auto kubelet = std::make_unique<ScriptedKubelet>(kubelet_socket_);
  Start();
  ASSERT_TRUE(Await([this] { return node_->HasFollowedKubelet(); }));
  kubelet.reset();
  ExpectTold("kubelet is not running, and was");
}

TEST_F(FaultTableTest, KubeletPinsContainers) {
  Start();
  std::ofstream(kubelet_dir_ + "/cpu_manager_state") << R"({"policyName":"static"})";
  ExpectTold("kubelet's CPU manager is `static`");
}

TEST_F(FaultTableTest, PluginIsDead) {
  Start();
  auto widget = StartWidget({});
  widget.reset();
  ExpectTold("a plugin is dead");
}

TEST_F(FaultTableTest, PluginHangs) {
  Start();
  PluginScript script;
  std::binary_semaphore may_answer(0);
  script.allocate = [&may_answer](const auto&, auto&) {
    may_answer.acquire();
    return OkStatus();
  };
  auto widget = StartWidget(script);
  EXPECT_FALSE(RunPod("web", "widget").ok());
  ExpectTold("a plugin hangs");
  may_answer.release();
}

TEST_F(FaultTableTest, PluginAnswersWrongly) {
  Start();
  PluginScript script;
  script.allocate = [](const auto&, auto& response) {
    auto& given = *response.mutable_allocation_result()->mutable_resource_allocation();
    given[kWidget].set_oci_property_name("CpusetCpus");
    given[kWidget].set_allocation_result("99");
    return OkStatus();
  };
  auto widget = StartWidget(script);
  EXPECT_FALSE(RunPod("web", "widget").ok());
  ExpectTold("a plugin answers wrongly");
}

TEST_F(FaultTableTest, DiskIsFull) {
  fs::create_directories(dir_ / "node/state/qrmd");
  const SmallDisk disk(dir_ / "node/state/qrmd", "2m");
  if (!disk.mounted()) {
    GTEST_SKIP() << "mounting a file system needs root";
  }
  Start();
  disk.Fill();
  for (int i = 0; i < 300 && RunPod("pod" + std::to_string(i)).ok(); ++i) {
  }
  ExpectTold("the disk is full");
  node_.reset();
}

TEST_F(FaultTableTest, DiskIsReadOnly) {
  fs::create_directories(dir_ / "node/state/qrmd");
  const SmallDisk disk(dir_ / "node/state/qrmd", "2m");
  if (!disk.mounted()) {
    GTEST_SKIP() << "mounting a file system needs root";
  }
  Start();
  node_->KillDaemon();
  ASSERT_TRUE(disk.MakeReadOnly());
  ASSERT_TRUE(IsOk(node_->Start(1)));
  ExpectTold("the disk is read-only");
  node_.reset();
}

TEST_F(FaultTableTest, DiskIsSlow) {
  Preload("QRM_SLOW_DISK_WHILE");
  Start();
  Begin();
  (void)RunPod("web");
  ExpectTold("the disk is slow");
}

TEST_F(FaultTableTest, ApiServerIsAway) {
  StartWithApiServer();
  server_.Refuse(1000, 503);
  ASSERT_TRUE(IsOk(RunPod("web")));
  ExpectTold("the API server is not running");
}

TEST_F(FaultTableTest, RightsAreTaken) {
  StartWithApiServer();
  server_.Refuse(1000, 403);
  ASSERT_TRUE(IsOk(RunPod("web")));
  ExpectTold("qrmd's rights are taken");
}

TEST_F(FaultTableTest, ClockJumps) {
  Preload("QRM_CLOCK_AHEAD_WHILE");
  Start();
  Begin();
  ExpectTold("the clock jumps");
}

TEST_F(FaultTableTest, FileHandlesAreUsedUp) {
  Preload("QRM_HANDLES_USED_UP");
  Start();
  Begin();
  ASSERT_TRUE(Await([this] { return fs::exists(fault_ + ".done"); }));
  ExpectTold("file handles are used up");
}

}  // namespace
}  // namespace qrm::test::fault_table_test
