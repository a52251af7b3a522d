// Plugins as separate processes, killed while the registry uses them.
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <sys/wait.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/registry/registry.h"
#include "test/support/await.h"
#include "test/support/child_process.h"
#include "test/support/loop_thread.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::plugin_process_test {
namespace {

using test::Await;
using test::ChildProcess;
using testing::HasSubstr;

/// The time until a plugin's end or return must be noticed.
constexpr std::chrono::seconds kLimit{2};

/// By the flag that says which path the plugin registers by.
class PluginProcessTest : public testing::TestWithParam<std::string> {
 protected:
  PluginProcessTest() { StartRegistry(); }
  void TearDown() override { StopRegistry(); }

  void StartRegistry() {
    RegistryOptions options;
    options.registration_dir = dir_ / "direct";
    options.watcher.directory = dir_ / "watched";
    options.endpoints.machine_nodes = {0};
    loop_.Run([&] {
      registry_ = std::make_unique<Registry>(loop_.io(), std::move(options));
      started_ = registry_->Start();
    });
  }
  void StopRegistry() {
    loop_.Run([this] { registry_.reset(); });
  }

  std::unique_ptr<ChildProcess> StartPlugin() {
    const bool direct = GetParam() == "--registration-dir";
    return std::make_unique<ChildProcess>(
        std::vector<std::string>{std::string(QRM_BIN) + "/test_counting_plugin", GetParam(),
                                 dir_ / (direct ? "direct" : "watched"), "--state-dir",
                                 dir_ / "state"},
        dir_ / "plugin.log");
  }

  PluginInfo Info() const { return registry_->plugins().Find("cpu").value_or(PluginInfo()); }
  bool IsLive() const { return Info().live; }

  StatusOr<AllocationByResource> Allocate(std::chrono::milliseconds budget = kLimit) {
    ContainerRequest request;
    request.key = {"uid", "main"};
    request.resource = "cpu";
    request.requests = {{"cpu", 2}};
    request.hint = TopologyHint{};
    return registry_->plugins()
        .AskForEach<calls::Allocate>({request}, DeadlineAfter(budget))
        .front();
  }

  test::TempDir dir_;
  Status started_;
  std::unique_ptr<Registry> registry_;
  test::LoopThread loop_;
};

TEST_P(PluginProcessTest, KilledPluginIsNotRunningAtOnceAndReturnsWithItsAllocations) {
  ASSERT_TRUE(started_.ok()) << started_;
  auto plugin = StartPlugin();
  ASSERT_TRUE(Await([&] { return IsLive(); })) << plugin->Output();
  const auto before = Allocate();
  ASSERT_TRUE(before.ok()) << before.status();

  plugin->Signal(SIGKILL);
  ASSERT_TRUE(Await([&] { return !IsLive(); }, kLimit));
  const Status refused = Allocate().status();
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(refused), HasSubstr("cannot allocate with plugin cpu at " + dir_.path()));
  EXPECT_THAT(MessageOf(refused), HasSubstr("restart the plugin"));

  plugin = StartPlugin();
  ASSERT_TRUE(Await([&] { return IsLive(); }, kLimit)) << plugin->Output();
  EXPECT_EQ(*Allocate(), *before);
}

TEST_P(PluginProcessTest, PluginRegistersWithTheNextRegistryByItself) {
  ASSERT_TRUE(started_.ok()) << started_;
  const auto plugin = StartPlugin();
  ASSERT_TRUE(Await([&] { return IsLive(); })) << plugin->Output();
  const auto before = Allocate();
  ASSERT_TRUE(before.ok()) << before.status();

  StopRegistry();
  StartRegistry();
  ASSERT_TRUE(started_.ok()) << started_;
  ASSERT_TRUE(Await([&] { return IsLive(); }, kLimit)) << plugin->Output();
  EXPECT_EQ(*Allocate(), *before);
}

TEST_P(PluginProcessTest, FrozenPluginCostsItsDeadlineAndRecovers) {
  ASSERT_TRUE(started_.ok()) << started_;
  const auto plugin = StartPlugin();
  ASSERT_TRUE(Await([&] { return IsLive(); })) << plugin->Output();

  test::StopChild(plugin->pid());
  const auto begun = std::chrono::steady_clock::now();
  const Status late = Allocate(std::chrono::milliseconds(200)).status();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kLimit);
  EXPECT_EQ(late.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(Info().problem, HasSubstr("suspect"));

  plugin->Signal(SIGCONT);
  EXPECT_TRUE(Allocate().ok());
  EXPECT_EQ(Info().problem, "");
}

INSTANTIATE_TEST_SUITE_P(Paths, PluginProcessTest,
                         testing::Values("--registration-dir", "--plugins-registry-dir"),
                         [](const auto& param_info) {
                           return param_info.param == "--registration-dir" ? "Direct" : "Watched";
                         });

}  // namespace
}  // namespace qrm::manager::plugin_process_test
