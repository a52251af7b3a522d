// /metrics, /healthz and /readyz over real HTTP.
#include "manager/observability/http_server.h"

#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/family.h>

#include "api/base/rejected.h"
#include "api/http/http_connections.h"
#include "manager/admission/explanation.h"
#include "manager/observability/metrics.h"
#include "test/support/fake_node_services.h"
#include "test/support/fake_plugins.h"
#include "test/support/fake_snapshots.h"
#include "test/support/sample_node.h"
#include "test/support/sysfs_machine.h"
#include "test/support/temp_dir.h"
#include "topology/discovery.h"

namespace qrm::manager::http_server_test {
namespace {

using boost::asio::ip::tcp;
using testing::HasSubstr;
using testing::Not;

struct Answer {
  int code = 0;
  std::string body;
};

const HttpOptions kAnyPorts = {.metrics_address = "127.0.0.1:0", .probe_address = "127.0.0.1:0"};

class HttpServerTest : public testing::Test {
 protected:
  Answer Get(const std::string& path) { return Exchange(PortOf(path), "GET " + path); }

  int PortOf(const std::string& path) const {
    return path.starts_with("/metrics") ? server_.metrics_port() : server_.probe_port();
  }

  /// Sends `request` and reads until the server closes.
  static Answer Exchange(int port, const std::string& request) {
    tcp::iostream stream("127.0.0.1", std::to_string(port));
    stream << request << " HTTP/1.1\r\nHost: localhost\r\n\r\n" << std::flush;
    std::string version;
    Answer answer;
    stream >> version >> answer.code;
    const std::string rest{std::istreambuf_iterator<char>(stream), {}};
    const auto head_end = rest.find("\r\n\r\n");
    answer.body = head_end == std::string::npos ? "" : rest.substr(head_end + 4);
    return answer;
  }

  void Start(const HttpOptions& options = kAnyPorts) {
    const Status started = server_.Start(options);
    ASSERT_TRUE(started.ok()) << started;
  }

  Metrics metrics_;
  test::FakeSnapshots snapshots_;
  test::FakePlugins plugins_;
  test::FakeNodeServices node_;
  const Machine machine_ = test::SampleMachine();
  HttpServer server_{metrics_, snapshots_, plugins_, node_, machine_};
};

TEST_F(HttpServerTest, NothingListensWithoutAnAddress) {
  Start({.metrics_address = "", .probe_address = ""});
  EXPECT_EQ(server_.metrics_port(), 0);
  EXPECT_EQ(server_.probe_port(), 0);
}

TEST_F(HttpServerTest, AddressesOfAnotherFormAreRejected) {
  EXPECT_EQ(server_.Start({.metrics_address = "localhost"}).code(), StatusCode::kInvalidArgument);
}

TEST_F(HttpServerTest, ATakenAddressIsUnavailable) {
  Start();
  HttpServer second(metrics_, snapshots_, plugins_, node_, machine_);
  const std::string taken = "127.0.0.1:" + std::to_string(server_.probe_port());
  const Status started = second.Start({.metrics_address = "", .probe_address = taken});
  EXPECT_EQ(started.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(started), HasSubstr("set probe-address"));
}

TEST_F(HttpServerTest, WithoutAHostIpv4AndIpv6AreServed) {
  Start({.metrics_address = ":0", .probe_address = ""});
  boost::asio::io_context io;
  for (const char* host : {"127.0.0.1", "::1"}) {
    tcp::socket socket(io);
    boost::system::error_code error;
    socket.connect(
        {boost::asio::ip::make_address(host), static_cast<uint16_t>(server_.metrics_port())},
        error);
    const bool no_v6 = error == boost::system::errc::address_not_available ||
                       error == boost::system::errc::address_family_not_supported;
    EXPECT_TRUE(!error || no_v6) << host << ": " << error.message();
  }
}

TEST_F(HttpServerTest, AnIpv6AddressIsServed) {
  const Status started = server_.Start({.metrics_address = "", .probe_address = "[::1]:0"});
  if (started.code() == StatusCode::kUnavailable) {
    GTEST_SKIP() << MessageOf(started);
  }
  tcp::iostream stream("::1", std::to_string(server_.probe_port()));
  stream << "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" << std::flush;
  std::string version;
  int code = 0;
  stream >> version >> code;
  EXPECT_EQ(code, 200);
}

TEST_F(HttpServerTest, MetricsCountWritesAndRepairsOfTheCheckpoint) {
  metrics_.store.Record(std::chrono::milliseconds(1), true, 1);
  metrics_.store.Record(std::chrono::milliseconds(1), false, 3);
  Start();
  const std::string metrics = Get("/metrics").body;
  EXPECT_THAT(metrics, HasSubstr("qrm_checkpoint_commit_duration_seconds_count 2\n"));
  EXPECT_THAT(metrics, HasSubstr("qrm_checkpoint_commit_errors_total 1\n"));
  EXPECT_THAT(metrics, HasSubstr("qrm_checkpoint_repairs_total 3\n"));
}

TEST_F(HttpServerTest, MetricsShowPoolsAndNumaNodes) {
  NodeStatus status;
  status.pools = {{.resource = "cpu", .pool = "fixed", .cpus = {4, 5}},
                  {.resource = "cpu",
                   .pool = "web",
                   .cpus = {0, 1},
                   .wished_cpus = 7,
                   .clipped = PoolClip::kRoom}};
  status.numa_nodes = {{.node = 1,
                        .own_cpus = 3,
                        .unowned_cpus = 5,
                        .idle_cpus = 2,
                        .lent_cpus = 1,
                        .headroom_cpus = 2.5}};
  node_.SetStatus(status);
  Start();
  const std::string metrics = Get("/metrics").body;
  for (const char* line : {
           R"(qrm_pool_cpus{resource="cpu",pool="fixed"} 2)",
           R"(qrm_pool_wished_cpus{resource="cpu",pool="web"} 7)",
           R"(qrm_pool_clipped{resource="cpu",pool="web",by="max"} 0)",
           R"(qrm_pool_clipped{resource="cpu",pool="web",by="room"} 1)",
           R"(qrm_numa_node_own_cpus{node="1"} 3)",
           R"(qrm_numa_node_unowned_cpus{node="1"} 5)",
           R"(qrm_numa_node_idle_cpus{node="1"} 2)",
           R"(qrm_numa_node_lent_cpus{node="1"} 1)",
           R"(qrm_numa_node_headroom_cpus{node="1"} 2.5)",
       }) {
    EXPECT_THAT(metrics, HasSubstr(line));
  }
  EXPECT_THAT(metrics, Not(HasSubstr(R"(qrm_pool_wished_cpus{resource="cpu",pool="fixed"})")));
}

TEST_F(HttpServerTest, HealthIsOkWhileTheLoopsTurn) {
  NodeStatus status;
  status.not_ready_reasons = {"the runtime is not running"};
  node_.SetStatus(status);
  Start();
  EXPECT_EQ(Get("/healthz").code, 200);
}

TEST_F(HttpServerTest, HealthNamesTheLoopThatDoesNotTurn) {
  node_.stalled_loops = {"the state loop has not run for 12 s"};
  Start();
  const Answer answer = Get("/healthz");
  EXPECT_EQ(answer.code, 503);
  EXPECT_EQ(answer.body, "the state loop has not run for 12 s\n");
}

TEST_F(HttpServerTest, ProbesAndMetricsAreNotServedOnEachOthersPort) {
  Start();
  EXPECT_EQ(Exchange(server_.metrics_port(), "GET /readyz").code, 404);
  EXPECT_EQ(Exchange(server_.metrics_port(), "GET /healthz").code, 404);
  EXPECT_EQ(Exchange(server_.probe_port(), "GET /metrics").code, 404);
}

TEST_F(HttpServerTest, ReadyReportsItsReasonsUntilThereAreNone) {
  NodeStatus status;
  status.not_ready_reasons = {"the runtime is not running", "plugin cpu is not running"};
  node_.SetStatus(status);
  Start();
  Answer answer = Get("/readyz");
  EXPECT_EQ(answer.code, 503);
  EXPECT_EQ(answer.body, "the runtime is not running\nplugin cpu is not running\n");
  node_.SetStatus({});
  answer = Get("/readyz");
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(answer.body, "ok\n");
}

TEST_F(HttpServerTest, ReadyzOfADegradedNodeIsReadyAndSaysWhatIsWorse) {
  NodeStatus status;
  status.degraded_reasons = {"containers are pinned late"};
  node_.SetStatus(status);
  Start();
  const Answer answer = Get("/readyz");
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(answer.body, "ok\ndegraded: containers are pinned late\n");
}

TEST_F(HttpServerTest, MetricsShowTheRuntimeMode) {
  NodeStatus status;
  status.runtime.mode = RuntimeMode::kObserver;
  status.reconcile.drift_repairs = 3;
  status.reconcile.deferred = 2;
  node_.SetStatus(status);
  Start();
  const std::string text = Get("/metrics").body;
  EXPECT_THAT(text, HasSubstr("qrm_runtime_mode{mode=\"observer\"} 1"));
  EXPECT_THAT(text, HasSubstr("qrm_runtime_mode{mode=\"nri\"} 0"));
  EXPECT_THAT(text, HasSubstr("qrm_drift_repairs_total 3"));
  EXPECT_THAT(text, HasSubstr("qrm_deferred_updates 2"));
}

TEST_F(HttpServerTest, MetricsCountExclusiveCpusThatAreOffline) {
  const test::TempDir dir;
  test::WriteSysfsMachine(dir.path(), {.cpus = 4});
  const auto machine =
      Discover({.kind = MachineSource::Kind::kFsRoot, .argument = std::string(dir.path())});
  ASSERT_TRUE(machine.ok()) << machine.status();
  snapshots_.Apply(test::Admit(test::SamplePod("web"), "main", {{"cpu", test::OwnCpus("0-2")}}));
  test::SetOnline(dir.path(), {0});
  HttpServer server(metrics_, snapshots_, plugins_, node_, *machine);
  ASSERT_EQ(server.Start(kAnyPorts), OkStatus());
  EXPECT_THAT(Exchange(server.metrics_port(), "GET /metrics").body,
              HasSubstr("qrm_offline_own_cpus 2\n"));
}

TEST_F(HttpServerTest, MetricsShowKeptAndReadValues) {
  plugins_.infos = {{.resource = "cpu", .live = true},
                    {.resource = "nic", .problem = "cannot be reached"}};
  snapshots_.Apply(test::Admit(test::SamplePod("web"), "main", {}));
  NodeStatus status;
  status.version = "1.2.3";
  status.reconcile.updates = 4;
  node_.SetStatus(status);
  metrics_.admission.Record(
      {.result = AdmissionEvent::Result::kRejected, .resource = "nic", .reason = "no_room"});
  metrics_.admission.Record({.ignored_keys = {"numa_binding", "other"}});
  Start();
  const Answer answer = Get("/metrics");
  EXPECT_EQ(answer.code, 200);
  for (const char* line :
       {"qrm_build_info{version=\"1.2.3\"} 1", "qrm_ready 1", "qrm_pods 1", "qrm_containers 1",
        "qrm_plugin_live{resource=\"cpu\"} 1", "qrm_plugin_live{resource=\"nic\"} 0",
        "qrm_reconcile_updates_total 4", "qrm_admissions_total{result=\"rejected\"} 1",
        "qrm_admissions_total{result=\"admitted\"} 1",
        "qrm_ignored_annotation_keys_total{key=\"numa_binding\"} 1",
        "qrm_admission_rejections_total{reason=\"no_room\",resource=\"nic\"} 1",
        "qrm_admission_duration_seconds_count 2",
        "pod_resources_endpoint_requests_total{server_api_version=\"v1alpha1\"} 0",
        "pod_resources_endpoint_requests_get_allocatable{server_api_version=\"v1\"} 0",
        "pod_resources_endpoint_errors_get_allocatable{server_api_version=\"v1\"} 0"}) {
    EXPECT_THAT(answer.body, HasSubstr(line));
  }
}

TEST_F(HttpServerTest, UsersAndCapacityOfClassesAreMetrics) {
  const auto rules = std::make_shared<ClassTypeRules>();
  rules->classes["fast"].capacity = 4;
  node_.classes = {
      {.offered = {.type = {.name = "blockio", .classes = {{.name = "fast"}, {.name = "slow"}}},
                   .rules = rules},
       .work = {.problems = {"one lacks it"}},
       .users = {{"fast", 2}}}};
  Start();
  const std::string body = Get("/metrics").body;
  for (const char* line : {"qrm_class_users{type=\"blockio\",class=\"fast\"} 2",
                           "qrm_class_users{type=\"blockio\",class=\"slow\"} 0",
                           "qrm_class_capacity{type=\"blockio\",class=\"fast\"} 4",
                           "qrm_class_unmet{type=\"blockio\"} 1"}) {
    EXPECT_THAT(body, HasSubstr(line));
  }
  EXPECT_THAT(body, Not(HasSubstr("qrm_class_capacity{type=\"blockio\",class=\"slow\"")));
}

TEST_F(HttpServerTest, EachMetricIsDocumented) {
  std::ifstream page("docs/metrics.md");
  const std::string documented{std::istreambuf_iterator<char>(page), {}};
  ASSERT_FALSE(documented.empty());
  metrics_.admission.Record({.result = AdmissionEvent::Result::kRejected, .resource = "cpu"});
  metrics_.admission.Record({.ignored_keys = {"other"}});
  metrics_.plugins.Record("cpu", "Allocate", std::chrono::milliseconds(1), true);
  metrics_.pod_resources.allocatable_errors_total.Add({{"resource", "cpu"}});
  NodeStatus status;
  status.runtime.last_sync = status.reconcile.last = std::chrono::steady_clock::now();
  status.publish.enabled = true;
  status.answer_ages = {{"cpu", 1}};
  node_.SetStatus(status);
  Start();
  std::istringstream lines(Get("/metrics").body);
  int names = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash;
    std::string kind;
    std::string name;
    words >> hash >> kind >> name;
    if (hash == "#" && kind == "TYPE") {
      ++names;
      EXPECT_THAT(documented, testing::ContainsRegex("`" + name + "[`{]"));
    }
  }
  EXPECT_GT(names, 20);
}

TEST_F(HttpServerTest, EachKindOfRejectedInputIsDocumented) {
  std::ifstream page("docs/metrics.md");
  const std::string documented{std::istreambuf_iterator<char>(page), {}};
  for (const RejectedBy program : {RejectedBy::kDaemon, RejectedBy::kScheduler}) {
    for (const RejectedCount& rejected : RejectedByKind(program)) {
      EXPECT_THAT(documented, HasSubstr("`" + std::string(rejected.kind) + "`"));
    }
  }
  Start();
  EXPECT_THAT(Get("/metrics").body, HasSubstr("qrm_rejected_inputs_total{kind=\"grpc_frames\"}"));
}

TEST_F(HttpServerTest, PluginCallsAreCountedByResourceAndMethod) {
  metrics_.plugins.Record("cpu", "Allocate", std::chrono::milliseconds(3), true);
  metrics_.plugins.Record("cpu", "Allocate", std::chrono::milliseconds(3), false);
  Start();
  const std::string body = Get("/metrics").body;
  const std::string labels = "{method=\"Allocate\",resource=\"cpu\"}";
  EXPECT_THAT(body, HasSubstr("qrm_plugin_call_duration_seconds_count" + labels + " 2"));
  EXPECT_THAT(body, HasSubstr("qrm_plugin_call_errors_total" + labels + " 1"));
}

TEST_F(HttpServerTest, MetricsNameNoPod) {
  snapshots_.Apply(test::Admit(test::SamplePod("secret-pod"), "main", {}));
  Start();
  EXPECT_THAT(Get("/metrics").body, Not(HasSubstr("secret-pod")));
}

TEST_F(HttpServerTest, OtherMethodsAreNotAllowed) {
  Start();
  EXPECT_EQ(Exchange(server_.metrics_port(), "DELETE /metrics").code, 405);
}

TEST_F(HttpServerTest, GarbageAndSilenceKeepNoOtherClientWaiting) {
  Start();
  constexpr std::size_t kSilent = 200;
  std::vector<tcp::iostream> silent;
  silent.reserve(kSilent);
  for (std::size_t i = 0; i < kSilent; ++i) {
    silent.emplace_back("127.0.0.1", std::to_string(server_.probe_port()));
  }
  tcp::iostream garbage("127.0.0.1", std::to_string(server_.probe_port()));
  garbage << std::string(100000, '\xff') << std::flush;
  EXPECT_EQ(Get("/healthz").code, 200);
}

TEST_F(HttpServerTest, SilentConnectionsAreClosedForNewOnes) {
  Start();
  tcp::iostream silent("127.0.0.1", std::to_string(server_.probe_port()));
  std::vector<tcp::iostream> others;
  others.reserve(HttpConnections::Limits().per_peer);
  for (std::size_t i = 0; i < HttpConnections::Limits().per_peer; ++i) {
    others.emplace_back("127.0.0.1", std::to_string(server_.probe_port()));
  }
  EXPECT_EQ(silent.get(), tcp::iostream::traits_type::eof());
}

TEST_F(HttpServerTest, OtherPathsAreNotFound) {
  Start();
  EXPECT_EQ(Get("/").code, 404);
  EXPECT_EQ(Get("/readyz/more").code, 404);
  EXPECT_EQ(Get("/metrics/more").code, 404);
}

}  // namespace
}  // namespace qrm::manager::http_server_test
