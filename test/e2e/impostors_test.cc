// Processes that pretend to be a plugin, kubelet or an administrator: they get nothing, and pods
// are placed as before.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/e2e/node.h"
#include "test/e2e/simulated_runtime.h"
#include "test/support/await.h"
#include "test/support/child_process.h"
#include "test/support/is_ok.h"
#include "test/support/scripted_plugin.h"
#include "test/support/temp_dir.h"
#include "test/support/tls_kubelet.h"

namespace qrm::test::impostors_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::chrono::milliseconds kSoon{100};
constexpr char kToken[] = "a token worth stealing";
constexpr int kAdministrator = 12345;

class ImpostorsTest : public testing::Test {
 protected:
  ImpostorsTest() {
    std::ofstream(config_) << "plugins: {cpu: {default-pool: online, pools: {online: {cpus: "
                              "\"0\"}}}}\n";
    std::ofstream(dir_ / "token") << kToken;
    std::filesystem::create_directories(plugins_);
    kubelet_.SetToken(kToken);
  }
  void SetUp() override { ASSERT_TRUE(IsOk(node_.Start(1))); }
  /// A plugin registers after the earlier sockets: then qrmd has seen these.
  void LetAnotherRegister() {
    honest_ = std::make_unique<ScriptedPlugin>(
        plugins_ + "/zz.sock", PluginScript{.identity = IdentityFor("example.com/honest")});
    EXPECT_TRUE(Await([this] { return LivePlugins().size() == 2; }));
  }
  std::vector<std::string> LivePlugins() const {
    std::vector<std::string> names;
    for (const v1::Plugin& plugin : node_.ListPlugins().value_or(std::vector<v1::Plugin>())) {
      if (plugin.live()) {
        names.push_back(plugin.resource_name());
      }
    }
    return names;
  }
  /// The median of several, since other work may keep the machine busy.
  void ExpectPodsAreAdmittedSoon() {
    int soon = 0;
    constexpr int kPods = 5;
    for (int number = 0; number < kPods; ++number) {
      const std::string name = "pod" + std::to_string(number);
      EXPECT_TRUE(IsOk(runtime_.RunPod(
          {.name = name, .uid = name, .container = {.name = "main", .milli_cpus = 100}})));
      soon += runtime_.last_creation() < kSoon ? 1 : 0;
    }
    EXPECT_GT(soon, kPods / 2);
  }

  /// A qrmctl that other users can run, and access to the socket's path.
  void LetOthersIn() const {
    ASSERT_EQ(::chmod(dir_.path().c_str(), 0755), 0);
    ASSERT_EQ(::chmod((dir_ / "node").c_str(), 0755), 0);
    const std::string qrmctl = dir_ / "qrmctl";
    std::filesystem::copy_file(
        std::filesystem::canonical("/proc/self/exe").parent_path() / "qrmctl", qrmctl);
    ASSERT_EQ(::chmod(qrmctl.c_str(), 0755), 0);
  }
  /// The error for `user`; empty when it succeeds.
  std::string QrmctlAs(int user, const std::vector<std::string>& words) const {
    const std::string id = std::to_string(user);
    std::vector<std::string> command = {"/usr/bin/setpriv", "--reuid=" + id, "--regid=" + id,
                                        "--clear-groups", dir_ / "qrmctl"};
    command.insert(command.end(), words.begin(), words.end());
    command.push_back("--control-socket=" + (dir_ / "node/control.sock"));
    ChildProcess asks(command, dir_ / id);
    return asks.Wait() == 0 ? "" : "failed: " + asks.Output();
  }

  const TempDir dir_;
  const std::string config_ = dir_ / "qrmd.yaml";
  const std::string plugins_ = dir_ / "node/plugins";
  TlsKubelet kubelet_;
  SimulatedRuntime runtime_{dir_.path()};
  Node node_{
      {.bin_dir = std::filesystem::canonical("/proc/self/exe").parent_path(),
       .work_dir = dir_ / "node",
       .config = config_,
       .nri_socket = runtime_.nri_socket(),
       .cri_socket = runtime_.cri_socket(),
       .builtin_plugins = "cpu",
       .flags = {"--control-uids=" + std::to_string(kAdministrator),
                 "--kubelet-url=https://127.0.0.1:" + std::to_string(kubelet_.port()) + "/pods",
                 "--kubelet-token-file=" + (dir_ / "token"), "--pod-spec-wait=0s"}}};
  std::unique_ptr<ScriptedPlugin> honest_;
};

TEST_F(ImpostorsTest, ALinkToASocketIsNotAPlugin) {
  const ScriptedPlugin impostor(dir_ / "mine.sock", {.identity = IdentityFor("example.com/mine")});
  std::filesystem::create_symlink(dir_ / "mine.sock", plugins_ + "/mine.sock");
  LetAnotherRegister();
  EXPECT_THAT(LivePlugins(), ElementsAre("cpu", "example.com/honest"));
  EXPECT_THAT(impostor.statuses(), IsEmpty()) << "no client has asked it";
  ExpectPodsAreAdmittedSoon();
}

TEST_F(ImpostorsTest, ASocketInAWorldWritableDirectoryIsNotAPlugin) {
  const std::string shared = plugins_ + "/shared";
  std::filesystem::create_directory(shared);
  ASSERT_EQ(::chmod(shared.c_str(), 0777), 0);
  const ScriptedPlugin impostor(shared + "/mine.sock",
                                {.identity = IdentityFor("example.com/mine")});
  LetAnotherRegister();
  EXPECT_THAT(LivePlugins(), ElementsAre("cpu", "example.com/honest"));
  ExpectPodsAreAdmittedSoon();
}

TEST_F(ImpostorsTest, ASocketInAGroupWritableDirectoryIsNotAPlugin) {
  const std::string shared = plugins_ + "/shared";
  std::filesystem::create_directory(shared);
  ASSERT_EQ(::chmod(shared.c_str(), 0770), 0);
  const ScriptedPlugin impostor(shared + "/mine.sock",
                                {.identity = IdentityFor("example.com/mine")});
  LetAnotherRegister();
  EXPECT_THAT(LivePlugins(), ElementsAre("cpu", "example.com/honest"));
  EXPECT_THAT(impostor.statuses(), IsEmpty()) << "no client has asked it";
}

// Left by a user who could write to the directory once.
TEST_F(ImpostorsTest, ASocketOfAnotherUserIsNotAPlugin) {
  const std::string hidden = plugins_ + "/.mine.sock";
  const ScriptedPlugin impostor(hidden, {.identity = IdentityFor("example.com/mine")});
  if (::chown(hidden.c_str(), kAdministrator, static_cast<gid_t>(-1)) != 0) {
    GTEST_SKIP() << "only root can give a socket away";
  }
  std::filesystem::rename(hidden, plugins_ + "/mine.sock");
  LetAnotherRegister();
  EXPECT_THAT(LivePlugins(), ElementsAre("cpu", "example.com/honest"));
  EXPECT_THAT(impostor.statuses(), IsEmpty()) << "no client has asked it";
}

TEST_F(ImpostorsTest, AServerThatAnswersUnimplementedIsNotAPlugin) {
  PluginScript script;
  script.identity = IdentityFor("example.com/mine");
  script.options = [](const auto&, auto&) { return Status(StatusCode::kUnimplemented, "what?"); };
  const ScriptedPlugin impostor(plugins_ + "/mine.sock", script);
  EXPECT_TRUE(Await([&] { return !impostor.statuses().empty(); }));
  EXPECT_THAT(impostor.statuses(), Contains(HasSubstr("is not a resource plugin")));
  LetAnotherRegister();
  EXPECT_THAT(LivePlugins(), ElementsAre("cpu", "example.com/honest"));
  ExpectPodsAreAdmittedSoon();
}

// Its certificate is self-signed, and qrmd does not know it.
TEST_F(ImpostorsTest, AnUnknownKubeletGetsNoToken) {
  ExpectPodsAreAdmittedSoon();
  EXPECT_TRUE(Await([this] {
    std::ifstream log(dir_ / "node/logs/qrmd.log");
    const std::string text{std::istreambuf_iterator<char>(log), {}};
    return text.find("cannot trust https://127.0.0.1") != std::string::npos;
  }));
  EXPECT_EQ(kubelet_.answered(), 0);
}

TEST_F(ImpostorsTest, OnlyAdministratorsAreServedAtTheControlSocket) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can change the user";
  }
  ASSERT_NO_FATAL_FAILURE(LetOthersIn());
  EXPECT_EQ(QrmctlAs(kAdministrator, {"permissions"}), "");
  EXPECT_NE(QrmctlAs(kAdministrator + 1, {"permissions"}), "");
  ExpectPodsAreAdmittedSoon();
}

TEST_F(ImpostorsTest, AdministratorsConfigureNothing) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can change the user";
  }
  ASSERT_NO_FATAL_FAILURE(LetOthersIn());
  std::ofstream(dir_ / "next.yaml") << "log-level: debug\n";
  EXPECT_THAT(QrmctlAs(kAdministrator, {"policy", "check", dir_ / "next.yaml"}),
              HasSubstr("uid 12345, pid"));
  EXPECT_EQ(QrmctlAs(0, {"policy", "check", dir_ / "next.yaml"}), "");
}

}  // namespace
}  // namespace qrm::test::impostors_test
