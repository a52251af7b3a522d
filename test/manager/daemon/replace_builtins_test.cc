// All built-in plugins get their new configuration, or none.
#include <memory>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "manager/daemon/start_builtin.h"
#include "plugins/sdk/plugin_driver.h"
#include "plugins/sdk/plugin_state.h"
#include "test/plugins/sdk/counting_plugin.h"

namespace qrm::manager::replace_builtins_test {
namespace {

using test::CountingPlugin;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// Cannot take over allocations.
class RefusingPlugin final : public sdk::ResourcePlugin {
 public:
  Status Restore(const sdk::Grants& /*grants*/) override {
    return Errorf(StatusCode::kFailedPrecondition, "cannot hold that");
  }
  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& /*request*/,
                                        const TopologyHint& /*hint*/) override {
    return sdk::PinCpus({7});
  }
};

class ReplaceBuiltinsTest : public testing::Test {
 protected:
  void SetUp() override {
    Run("cpu", cpu_);
    Run("memory", memory_);
  }
  void Run(const std::string& resource, CountingPlugin& plugin) {
    auto started = LocalPlugin::Start(plugin, resource, sdk::MakeMemoryState());
    ASSERT_TRUE(started.ok()) << started.status();
    running_.emplace(resource, *std::move(started));
  }
  std::string Allocate(const std::string& resource, const std::string& pod) {
    ContainerRequest request = test::CpuRequest(pod, "main", 1);
    request.resource = resource;
    request.requests = {{resource, 1}};
    std::string value;
    running_.at(resource)->Run([&](sdk::PluginDriver& driver) {
      const auto given = driver.Allocate(request);
      value = given.ok() ? (*given)->value : MessageOf(given.status());
    });
    return value;
  }
  /// One plugin of each resource; `memory` is the second resource's.
  static std::vector<BuiltinPlugin> Fresh(std::unique_ptr<sdk::ResourcePlugin> memory) {
    std::vector<BuiltinPlugin> fresh;
    fresh.push_back({.resource = "cpu", .plugin = std::make_unique<CountingPlugin>()});
    fresh.push_back({.resource = "memory", .plugin = std::move(memory), .place = "qrmd.yaml:7"});
    return fresh;
  }

  CountingPlugin cpu_;
  CountingPlugin memory_;
  LocalPlugins running_;
};

TEST_F(ReplaceBuiltinsTest, AllServeFromThenOnWithTheFormerAllocations) {
  ASSERT_EQ(Allocate("cpu", "a"), "0");
  ASSERT_EQ(Allocate("memory", "a"), "0");
  ASSERT_TRUE(ReplaceBuiltins(Fresh(std::make_unique<CountingPlugin>()), running_).ok());
  EXPECT_EQ(Allocate("cpu", "b"), "1");
  EXPECT_EQ(Allocate("memory", "b"), "1");
  EXPECT_EQ(cpu_.allocate_calls, 1);
  EXPECT_EQ(memory_.allocate_calls, 1);
}

TEST_F(ReplaceBuiltinsTest, NoneIsReplacedWhenOneCannotTakeOver) {
  ASSERT_EQ(Allocate("cpu", "a"), "0");
  EXPECT_THAT(MessageOf(ReplaceBuiltins(Fresh(std::make_unique<RefusingPlugin>()), running_)),
              AllOf(StartsWith("qrmd.yaml:7: "), HasSubstr("cannot hold that")));
  EXPECT_EQ(Allocate("cpu", "b"), "1");
  EXPECT_EQ(Allocate("memory", "b"), "0");
  EXPECT_EQ(cpu_.allocate_calls, 2);
  EXPECT_EQ(memory_.allocate_calls, 1);
}

TEST_F(ReplaceBuiltinsTest, ResourceThatNoneServesIsRejected) {
  std::vector<BuiltinPlugin> fresh;
  fresh.push_back({.resource = "nic", .plugin = std::make_unique<CountingPlugin>()});
  EXPECT_THAT(MessageOf(ReplaceBuiltins(std::move(fresh), running_)),
              HasSubstr("no such plugin runs inside qrmd; restart qrmd"));
}

}  // namespace
}  // namespace qrm::manager::replace_builtins_test
