// What a plugin is taught when it registers.
#include "manager/admission/teach_plugin.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
    call->Serve(driver_, machine_nodes_);
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

/// After the loss of a log the checkpoint is older than the plugin's state: what pods had that are
/// gone since may belong to others.
TEST(TeachPluginTest, TeachesNothingOfPodsThatTheRuntimeDoesNotHave) {
  const auto state = std::make_shared<const checkpoint::NodeState>(
      checkpoint::NodeState()
          .With(Admit(SamplePod("gone"), "main", {{"cpu", OwnCpus("0-1")}}))
          .With(Admit(SamplePod("lives"), "main", {{"cpu", OwnCpus("2-3")}})));
  const auto client = std::make_shared<ServedPlugin>();
  const AdmissionOptions options;
  bool ready = false;

  TeachPlugin({.resource = "cpu", .registered_by = RegisteredBy::kWatcher}, client,
              {.state = state,
               .is_live = [](const ContainerKey& key) { return key.pod_uid == "uid-lives"; },
               .options = options},
              [&] { ready = true; });

  EXPECT_TRUE(ready);
  EXPECT_THAT(Pods(client->plugin.restored), ElementsAre("uid-lives"));
}

TEST(TeachPluginTest, APluginThatLacksNothingLearnsThatItIsTaught) {
  const auto client = std::make_shared<ServedPlugin>();
  const AdmissionOptions options;
  bool ready = false;

  TeachPlugin({.resource = "cpu", .registered_by = RegisteredBy::kWatcher}, client,
              {.state = std::make_shared<const checkpoint::NodeState>(),
               .is_live = [](const ContainerKey&) { return true; },
               .options = options},
              [&] { ready = true; });

  EXPECT_TRUE(ready);
  EXPECT_TRUE(client->is_taught());
}

TEST(TeachPluginTest, TeachesNothingBeforeTheRuntimeHasToldWhatThereIs) {
  const auto state = std::make_shared<const checkpoint::NodeState>(checkpoint::NodeState().With(
      Admit(SamplePod("recorded"), "main", {{"cpu", OwnCpus("0-1")}})));
  const auto client = std::make_shared<ServedPlugin>();
  const AdmissionOptions options;
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

}  // namespace
}  // namespace qrm::manager::teach_plugin_test
