// The resync of a plugin when it registers.
#include "manager/admission/teach_plugin.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugins/placement/recorded_grants.h"
#include "plugins/sdk/calls/extension_calls.h"
#include "plugins/sdk/calls/plugin_calls.h"
#include "plugins/sdk/plugin_driver.h"
#include "plugins/sdk/plugin_state.h"
#include "test/plugins/sdk/counting_plugin.h"
#include "test/support/sample_node.h"

namespace qrm::manager::teach_plugin_test {
namespace {

using test::Admit;
using test::OwnCpus;
using test::SamplePod;
using testing::ElementsAre;

// Answers each call at once.
class ServedPlugin final : public PluginClient {
 public:
  ServedPlugin() : driver_(plugin, "cpu", sdk::MakeMemoryState()) {
    EXPECT_TRUE(driver_.Start().ok());
  }

  std::shared_ptr<grpc::Channel> channel() const override { return nullptr; }
  void Start(const std::shared_ptr<calls::Call>& call, Deadline /*deadline*/) override {
    std::vector<calls::ServedCall> all = calls::PluginCalls();
    for (const calls::ServedCall& more : calls::ExtensionCalls()) {
      all.push_back(more);
    }
    for (const calls::ServedCall& served : all) {
      if (served.method.path == std::string_view(call->method().path)) {
        const auto answer = served.answer(driver_, call->Request());
        answer.ok() ? call->Take({*answer}, machine_nodes_)
                    : call->Fail(answer.status(), calls::Blame::kRefusal);
      }
    }
  }

  bool is_taught() const { return driver_.is_taught(); }

  test::CountingPlugin plugin;

 private:
  sdk::PluginDriver driver_;
  const NumaMask machine_nodes_{0, 1};
};

std::vector<std::string> Pods(const sdk::Grants& grants) {
  std::vector<std::string> uids;
  uids.reserve(grants.size());
  for (const auto& [key, grant] : grants) {
    uids.push_back(key.pod_uid);
  }
  return uids;
}

/// After the loss of a log the checkpoint is older than the plugin's state: CPUs of pods that are
/// gone since may belong to others.
TEST(TeachPluginTest, ResyncsNothingOfPodsThatTheRuntimeDoesNotHave) {
  const auto state = std::make_shared<const checkpoint::NodeState>(
      checkpoint::NodeState()
          .With(Admit(SamplePod("gone"), "main", {{"cpu", OwnCpus("0-1")}}))
          .With(Admit(SamplePod("lives"), "main", {{"cpu", OwnCpus("2-3")}})));
  const auto client = std::make_shared<ServedPlugin>();
  const placement::AdmissionOptions options;
  bool ready = false;

  TeachPlugin({.resource = "cpu", .registered_by = RegisteredBy::kWatcher}, client,
              {.state = state,
               .is_live = [](const ContainerKey& key) { return key.pod_uid == "uid-lives"; },
               .options = options},
              [&] { ready = true; });

  EXPECT_TRUE(ready);
  EXPECT_THAT(Pods(client->plugin.restored), ElementsAre("uid-lives"));
}

TEST(TeachPluginTest, APluginThatLacksNothingLearnsThatItIsResynced) {
  const auto client = std::make_shared<ServedPlugin>();
  const placement::AdmissionOptions options;
  bool ready = false;

  TeachPlugin({.resource = "cpu", .registered_by = RegisteredBy::kWatcher}, client,
              {.state = std::make_shared<const checkpoint::NodeState>(),
               .is_live = [](const ContainerKey&) { return true; },
               .options = options},
              [&] { ready = true; });

  EXPECT_TRUE(ready);
  EXPECT_TRUE(client->is_taught());
}

TEST(TeachPluginTest, ResyncsNothingBeforeTheRuntimeHasReportedAllContainers) {
  const auto state = std::make_shared<const checkpoint::NodeState>(checkpoint::NodeState().With(
      Admit(SamplePod("recorded"), "main", {{"cpu", OwnCpus("0-1")}})));
  const auto client = std::make_shared<ServedPlugin>();
  const placement::AdmissionOptions options;
  bool ready = false;

  TeachPlugin({.resource = "cpu", .registered_by = RegisteredBy::kWatcher}, client,
              {.state = state,
               .live_is_known = false,
               .is_live = [](const ContainerKey&) { return true; },
               .options = options},
              [&] { ready = true; });

  EXPECT_TRUE(ready);
  EXPECT_THAT(Pods(client->plugin.restored), ElementsAre());
  EXPECT_TRUE(client->is_taught());
}

// A plugin with CPUs 0-1 for a pod that is gone.
class TeachPluginWithOrphanTest : public testing::Test {
 protected:
  TeachPluginWithOrphanTest() {
    const auto before =
        checkpoint::NodeState().With(Admit(SamplePod("gone"), "main", {{"cpu", OwnCpus("0-1")}}));
    client_->Ask<calls::Restore>(
        {.grants = placement::RecordedGrants(before, cpu_.resource, options_)}, Deadline::max(),
        [](const calls::CallResult<calls::Nothing>& taught) {
          EXPECT_TRUE(taught.value.ok()) << taught.value.status();
        });
  }
  /// The containers that the plugin has removed when it is live: a pod has `cpus` on record, which
  /// the plugin does not know.
  std::vector<ContainerKey> RemovedBeforeItIsLive(const std::string& cpus) {
    const auto state = std::make_shared<const checkpoint::NodeState>(
        checkpoint::NodeState().With(Admit(SamplePod("lives"), "main", {{"cpu", OwnCpus(cpus)}})));
    std::vector<ContainerKey> removed;
    bool ready = false;
    TeachPlugin(cpu_, client_,
                {.state = state,
                 .is_live = [](const ContainerKey& key) { return key.pod_uid == "uid-lives"; },
                 .options = options_},
                [&] {
                  ready = true;
                  removed = client_->plugin.removed;
                });
    EXPECT_TRUE(ready);
    EXPECT_TRUE(client_->plugin.restored.contains({"uid-lives", "main"}));
    return removed;
  }

  const PluginInfo cpu_{.resource = "cpu", .registered_by = RegisteredBy::kWatcher};
  const placement::AdmissionOptions options_;
  const std::shared_ptr<ServedPlugin> client_ = std::make_shared<ServedPlugin>();
};

TEST_F(TeachPluginWithOrphanTest, IsLiveBeforeItReleasesAllocationsWithoutAContainer) {
  EXPECT_THAT(RemovedBeforeItIsLive("2-3"), ElementsAre());
}

TEST_F(TeachPluginWithOrphanTest, ReleasesFirstWhatIsExclusiveToAnotherContainerOnRecord) {
  EXPECT_THAT(RemovedBeforeItIsLive("1-2"), ElementsAre(ContainerKey{"uid-gone", "main"}));
}

}  // namespace
}  // namespace qrm::manager::teach_plugin_test
