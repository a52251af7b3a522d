// Admissions beside peers that keep qrmd waiting: a plugin that hangs, and a kubelet that does not
// report a pod.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_kubelet.h"
#include "test/support/scripted_plugin.h"
#include "test/support/temp_dir.h"

namespace qrm::test::strangers_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;

constexpr char kHangingResource[] = "example.com/hangs";
constexpr int kAdmissions = 20;
constexpr int kPods = 400;  // more than there is time for
constexpr milliseconds kSoon{100};
constexpr milliseconds kHeld{2000};

PodSpec Pod(const std::string& name) {
  return {.name = name, .uid = "uid-" + name, .container = {.name = "main", .milli_cpus = 500}};
}

template <typename T>
bool IsReady(const std::future<T>& future) {
  return future.wait_for(milliseconds(0)) == std::future_status::ready;
}

// qrmd with its cpu plugin, a kubelet that knows all pods except "slow", and a plugin that no
// container requests and that does not answer when it is asked for its pools.
class SlowPeersTest : public testing::Test {
 protected:
  SlowPeersTest() {
    std::ofstream(config_) << "plugins: {cpu: {default-pool: online, pools: {online: {cpus: "
                              "\"0\"}}}}\n";
    for (int number = 0; number < kPods; ++number) {
      const std::string name = "pod" + std::to_string(number);
      kubelet_.Put("uid-" + name, PodMessage("uid-" + name, name, "500m"));
    }
    kubelet_.HoldLookups("uid-slow");
  }
  void TearDown() override { answer_pools_.set_value(); }

  void Start() {
    ASSERT_TRUE(IsOk(node_.Start(1)));
    PluginScript script;
    script.options = [](const auto&, auto&) { return OkStatus(); };
    script.get_pools = [this, answer = answer_pools_.get_future().share()](const auto&, auto&) {
      ++asked_;
      answer.wait();
      return OkStatus();
    };
    script.identity = IdentityFor(kHangingResource);
    plugin_ = std::make_unique<ScriptedPlugin>(dir_ / "node/plugins/hangs.sock", script);
    ASSERT_TRUE(Await([this] {
      const auto plugins = node_.ListPlugins();
      return plugins.ok() && std::count_if(plugins->begin(), plugins->end(),
                                           [](const auto& plugin) { return plugin.live(); }) == 2;
    }));
    ASSERT_TRUE(IsOk(runtime_.RunPod(Pod("pod0"))));  // kubelet has reported all its pods by then
  }
  /// True when so many creations in a row were answered at once before `held` was. On a busy
  /// machine, the first ones may not be.
  template <typename T>
  bool AdmitsOthersSoonBeside(const std::future<T>& held) {
    int in_a_row = 0;
    for (int number = 1; number < kPods && in_a_row < kAdmissions && !IsReady(held); ++number) {
      const PodSpec pod = Pod("pod" + std::to_string(number));
      if (const Status run = runtime_.RunPod(pod); !run.ok()) {
        ADD_FAILURE() << run;
        return false;
      }
      EXPECT_EQ(runtime_.RunOptions(pod.name)["linux_container_resources"]["cpusetCpus"], "0");
      in_a_row = runtime_.last_creation() < kSoon ? in_a_row + 1 : 0;
    }
    return in_a_row == kAdmissions && !IsReady(held);
  }
  /// How qrmd placed the slow pod; empty until then.
  std::string PlaceOfSlow() const { return node_.Qrmctl({"explain", "slow"}).value_or(""); }

  const TempDir dir_;
  const std::string config_ = dir_ / "qrmd.yaml";
  std::promise<void> answer_pools_;
  std::atomic<int> asked_ = 0;  ///< for pools
  ScriptedKubelet kubelet_{dir_ / "pods-api.sock"};
  SimulatedRuntime runtime_{dir_.path()};
  Node node_{{.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
              .work_dir = dir_ / "node",
              .config = config_,
              .nri_socket = runtime_.nri_socket(),
              .cri_socket = runtime_.cri_socket(),
              .builtin_plugins = "cpu",
              .flags = {"--kubelet-pods-socket=" + (dir_ / "pods-api.sock"), "--pod-spec-wait=10s",
                        "--admission-deadline=10s"}}};
  std::unique_ptr<ScriptedPlugin> plugin_;
};

TEST_F(SlowPeersTest, AdmissionsContinueBesideAPluginThatHangsAndAnUnknownRunningPod) {
  Start();
  runtime_.RunPodUnseen(Pod("slow"));
  runtime_.Disconnect();  // so that qrmd learns of it later
  ASSERT_TRUE(Await([this] { return kubelet_.lookups() == 1; }));
  const auto begin = steady_clock::now();
  auto pools = std::async(std::launch::async,
                          [this] { return node_.Qrmctl({"pool", "get", kHangingResource}); });
  EXPECT_TRUE(AdmitsOthersSoonBeside(pools));

  EXPECT_THAT(MessageOf(pools.get().status()), HasSubstr(kHangingResource));
  EXPECT_GE(steady_clock::now() - begin, kHeld);
  EXPECT_EQ(PlaceOfSlow(), "") << "kubelet has not reported it yet";
  kubelet_.Put("uid-slow", PodMessage("uid-slow", "slow", "250m"));
  kubelet_.ReleaseLookups();
  EXPECT_TRUE(Await([this] {
    return PlaceOfSlow().find("0.25 (from pods-api)") != std::string::npos;
  })) << PlaceOfSlow();
}

TEST_F(SlowPeersTest, AdmissionsGoOnBesideAPluginThatHangs) {
  Start();
  auto pools = std::async(std::launch::async,
                          [this] { return node_.Qrmctl({"pool", "get", kHangingResource}); });
  ASSERT_TRUE(Await([this] { return asked_ == 1; }));
  EXPECT_TRUE(AdmitsOthersSoonBeside(pools));
  EXPECT_FALSE(pools.get().ok());
}

TEST_F(SlowPeersTest, CreationsContinueBesideOneOfAnUnknownPod) {
  Start();
  auto slow = std::async(std::launch::async, [this] { return runtime_.RunPod(Pod("slow")); });
  ASSERT_TRUE(Await([this] { return kubelet_.lookups() == 1; }));
  EXPECT_TRUE(AdmitsOthersSoonBeside(slow));

  kubelet_.Put("uid-slow", PodMessage("uid-slow", "slow", "250m"));
  kubelet_.ReleaseLookups();
  EXPECT_TRUE(IsOk(slow.get()));
  EXPECT_THAT(PlaceOfSlow(), HasSubstr("0.25 (from pods-api)"));
}

}  // namespace
}  // namespace qrm::test::strangers_test
