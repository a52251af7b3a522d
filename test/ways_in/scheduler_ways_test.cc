// Each way into qrm-scheduler that docs/ways-in.md lists, attacked beside calls of kube-scheduler.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "test/e2e/process.h"
#include "test/soak/process_use.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/temp_dir.h"
#include "test/ways_in/memory_limit.h"
#include "test/ways_in/port_attacks.h"
#include "test/ways_in/scheduler_attacks.h"
#include "test/ways_in/ways_in_page.h"

namespace qrm::test::scheduler_ways_test {
namespace {

using nlohmann::json;

/// charts/qrm-scheduler/values.yaml.
constexpr std::size_t kLimitBytes = std::size_t{512} << 20;
constexpr std::chrono::seconds kPatience{60};
constexpr char kNodeConfig[] =
    R"({machine: "synthetic:package:2 [numa(memory=8GiB)] core:4 pu:1",
        topology-policy: single-numa-node, plugins: {cpu: {reserved-cpus: "0", static: true}}})";

class SchedulerWaysTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(SchedulerAttacks().contains(GetParam()))
        << "docs/ways-in.md lists " << GetParam() << ", and no attack tries it; write one";
    cluster_.Put(
        "/api/v1/nodes",
        {{"metadata", {{"name", "n1"}, {"annotations", {{"qrm.io/node-config", kNodeConfig}}}}},
         {"status", {{"allocatable", {{"cpu", "8"}}}}}});
    PutPod("honest");
    const cluster::ClusterAccess access = cluster_.access();
    std::ofstream(dir_ / "ca.crt") << access.authorities.text;
    std::ofstream(dir_ / "kubeconfig") << fmt::format(
        "{{current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}], "
        "clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{}', "
        "certificate-authority: ca.crt}}}}], users: [{{name: u, user: {{}}}}]}}\n",
        access.server.port);
    auto started = Process::Start(
        {program_, "serve", "--kubeconfig=" + (dir_ / "kubeconfig"), "--address=127.0.0.1:0",
         "--monitor-address=127.0.0.1:0", "--resources=numa,classes", "--lease-name="},
        dir_ / "log");
    ASSERT_TRUE(IsOk(started.status()));
    process_ = *std::move(started);
    limit_.Add(process_->pid());
    ASSERT_TRUE(Await([this] { return PortIn(" monitor_port=") != 0; })) << process_->LastOutput();
    ASSERT_TRUE(Await([this] {
      return AskPort(PortIn(" monitor_port="), "GET /readyz", "") == "ok\n";
    })) << AskPort(PortIn(" monitor_port="), "GET /readyz", "");
    ASSERT_TRUE(Await([this] { return ProblemOfFilter("honest").empty(); }))
        << ProblemOfFilter("honest");
  }

  void PutPod(const std::string& name) {
    cluster_.Put("/api/v1/pods",
                 {{"metadata", {{"namespace", "d"}, {"name", name}, {"uid", "uid-" + name}}},
                  {"spec", {{"containers", json::array({{{"name", "c"}}})}}}});
  }

  int PortIn(const std::string& field) const {
    std::ifstream log(dir_ / "log");
    for (std::string line; std::getline(log, line);) {
      if (const std::size_t at = line.find(field); at != std::string::npos) {
        return std::stoi(line.substr(at + field.size()));
      }
    }
    return 0;
  }

  /// Empty when the answer to kube-scheduler is that the pod fits, as it is once the pod has been
  /// read; else the answer.
  std::string ProblemOfFilter(const std::string& name) const {
    const json pod = cluster_.Find("/api/v1/pods", "d/" + name);
    const json call = {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", {"n1"}}};
    const std::string text = AskPort(PortIn(" port="), "POST /filter", call.dump());
    const json answer = json::parse(text, nullptr, false);
    const bool fits =
        answer.is_object() && answer.value("NodeNames", json()) == json::array({"n1"});
    return fits ? "" : "answer: " + text;
  }

  const std::string program_ = QRM_BIN "/qrm-scheduler";
  const TempDir dir_;
  FakeApiServer cluster_;
  const MemoryLimit limit_{kLimitBytes};
  std::unique_ptr<Process> process_;
};

TEST_P(SchedulerWaysTest, CostsLittleMemoryAndNoCall) {
  const double before = ReadProcessUse(process_->pid())->resident_mib;
  ForgetPeak(process_->pid());
  std::atomic<bool> over = false;
  int answered = 0;
  std::thread honest([&] {
    while (!over || answered == 0) {
      EXPECT_EQ(ProblemOfFilter("honest"), "");
      ++answered;
    }
  });
  AttackedScheduler scheduler{.dir = dir_.path(),
                              .program = program_,
                              .cluster = cluster_,
                              .port = PortIn(" port="),
                              .monitor_port = PortIn(" monitor_port=")};
  SchedulerAttacks().at(GetParam())(scheduler);
  // All has been read when what was written last is known.
  cluster_.Put("/api/v1/nodes", {{"metadata", {{"name", "last"}}}});
  PutPod("last");
  EXPECT_TRUE(Await([&] { return ProblemOfFilter("last").empty(); }, kPatience))
      << ProblemOfFilter("last");
  EXPECT_TRUE(Await(
      [&] {
        return AskPort(scheduler.port, "GET /dump", "").find("\"last\"") != std::string::npos;
      },
      kPatience));
  over = true;
  honest.join();
  ASSERT_TRUE(process_->Running()) << process_->LastOutput();
  const double peak = ReadProcessUse(process_->pid())->peak_mib;
  std::cout << GetParam() << ": " << before << " MiB before, " << peak << " MiB at most, "
            << answered << " calls beside it\n";
  EXPECT_LE(peak - before, kMostGrowthMib);
}

INSTANTIATE_TEST_SUITE_P(Page, SchedulerWaysTest, testing::ValuesIn(WaysInto("qrm-scheduler")),
                         [](const auto& param_info) { return TestNameOf(param_info.param); });

TEST(SchedulerWaysInPageTest, ListsEachWayThatHasAnAttack) {
  for (const auto& [way, attack] : SchedulerAttacks()) {
    EXPECT_THAT(WaysInto("qrm-scheduler"), testing::Contains(way));
  }
}

}  // namespace
}  // namespace qrm::test::scheduler_ways_test
