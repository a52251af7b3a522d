// Registration by both paths, over real sockets.
#include "manager/registry/registry.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "api/base/check.h"
#include "api/base/rejected.h"
#include "api/proto/resourceplugin/v1alpha1/api.grpc.pb.h"
#include "test/support/await.h"
#include "test/support/loop_thread.h"
#include "test/support/scripted_plugin.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::registry_test {
namespace {

using test::Await;
using test::IdentityFor;
using test::PluginScript;
using test::ScriptedPlugin;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace pb = ::resourceplugin::v1alpha1;

class RegistryTest : public testing::Test {
 protected:
  RegistryTest() { std::filesystem::create_directory(dir_ / "direct"); }
  void TearDown() override {
    loop_.Run([this] { registry_.reset(); });
  }

  void Start(std::set<std::string> known = {}) {
    RegistryOptions options;
    options.registration_dir = dir_ / "direct";
    options.watcher.directory = dir_ / "watched";
    options.watcher.backoff_first = std::chrono::milliseconds(20);
    options.watcher.rescan_period = std::chrono::seconds(60);
    options.endpoints.machine_nodes = {0, 1};
    options.endpoints.known = std::move(known);
    options.endpoints.on_registered = [this](const std::string& resource) {
      const MutexLock lock(mutex_);
      registered_.push_back(resource);
    };
    loop_.Run([&] {
      registry_ = std::make_unique<Registry>(loop_.io(), std::move(options));
      started_ = registry_->Start();
    });
    ASSERT_TRUE(started_.ok()) << started_;
  }

  std::string Direct(const std::string& name) const { return dir_ / ("direct/" + name); }
  std::string Watched(const std::string& name) const { return dir_ / ("watched/" + name); }

  grpc::Status Register(const pb::RegisterRequest& request) {
    const auto stub = pb::Registration::NewStub(
        grpc::CreateChannel("unix:" + Direct("kubelet.sock"), grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    pb::Empty response;
    return stub->Register(&context, request, &response);
  }

  static pb::RegisterRequest RequestFor(const std::string& resource, const std::string& endpoint) {
    pb::RegisterRequest request;
    request.set_version("v1alpha1");
    request.set_resource_name(resource);
    request.set_endpoint(endpoint);
    return request;
  }

  /// Empty for an unknown plugin.
  PluginInfo InfoOf(const std::string& resource) {
    return registry_->plugins().Find(resource).value_or(PluginInfo());
  }
  bool IsLive(const std::string& resource) { return InfoOf(resource).live; }

  std::vector<std::string> registered() const {
    const MutexLock lock(mutex_);
    return registered_;
  }

  test::TempDir dir_;
  mutable Mutex mutex_;
  std::vector<std::string> registered_ QRM_GUARDED_BY(mutex_);
  Status started_;
  std::unique_ptr<Registry> registry_;
  test::LoopThread loop_;
};

PluginScript ScriptFor(const std::string& resource) {
  PluginScript script;
  script.identity = IdentityFor(resource);
  return script;
}

/// A socket file without a listener.
void BindAndLeave(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  QRM_CHECK(fd >= 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ::close(fd);
}

// --- the direct path

TEST_F(RegistryTest, RegisterMakesThePluginLive) {
  Start();
  const ScriptedPlugin plugin(Direct("cpu.sock"), {});
  EXPECT_TRUE(Register(RequestFor("cpu", "cpu.sock")).ok());
  ASSERT_TRUE(IsLive("cpu"));
  const PluginInfo info = InfoOf("cpu");
  EXPECT_EQ(info.registered_by, RegisteredBy::kRegister);
  EXPECT_EQ(info.endpoint, Direct("cpu.sock"));
  EXPECT_TRUE(info.options.with_topology_alignment) << "options that were not sent are asked for";
  EXPECT_THAT(registered(), ElementsAre("cpu"));
}

TEST_F(RegistryTest, OptionsThatAreSentCount) {
  Start();
  const ScriptedPlugin plugin(Direct("cpu.sock"), {});
  pb::RegisterRequest request = RequestFor("cpu", "cpu.sock");
  request.mutable_options()->set_pre_start_required(true);
  ASSERT_TRUE(Register(request).ok());
  EXPECT_EQ(InfoOf("cpu").options, PluginOptions{.pre_start_required = true});
}

TEST_F(RegistryTest, DoesNotStartOnAWorldWritableDirectory) {
  ASSERT_EQ(::chmod((dir_ / "direct").c_str(), 0777), 0);
  RegistryOptions options;
  options.registration_dir = dir_ / "direct";
  options.watcher.directory = dir_ / "watched";
  Registry registry(loop_.io(), std::move(options));
  EXPECT_EQ(registry.Start().code(), StatusCode::kFailedPrecondition);
}

TEST_F(RegistryTest, PassesOverSocketsInADirectoryOfAnotherUser) {
  const uint64_t rejected = RejectedSoFar(Rejected::kPluginPath);
  const std::string others = dir_ / "watched/others";
  std::filesystem::create_directories(others);
  ASSERT_EQ(::chmod(others.c_str(), 0777), 0);
  const ScriptedPlugin stranger(others + "/nic.sock", {.identity = IdentityFor("nic")});
  const ScriptedPlugin plugin(dir_ / "watched/zz.sock", {.identity = IdentityFor("cpu")});
  Start();
  EXPECT_TRUE(Await([this] { return registry_->plugins().Find("cpu").has_value(); }));
  EXPECT_FALSE(registry_->plugins().Find("nic").has_value());
  EXPECT_GT(RejectedSoFar(Rejected::kPluginPath), rejected);
}

TEST_F(RegistryTest, AServerWithoutTheFirstCallOfTheProtocolIsNotAPlugin) {
  Start();
  PluginScript script;
  script.options = [](const auto&, auto&) { return Status(StatusCode::kUnimplemented, "old"); };
  const ScriptedPlugin plugin(Direct("cpu.sock"), script);
  const grpc::Status refused = Register(RequestFor("cpu", "cpu.sock"));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("is not a resource plugin"));
  EXPECT_FALSE(registry_->plugins().Find("cpu").has_value());
}

struct BadRegistration {
  std::string name;
  std::string version;
  std::string resource;
  std::string endpoint;
  std::string sentence;
};

class RegistryRejectionTest : public RegistryTest,
                              public testing::WithParamInterface<BadRegistration> {};

TEST_P(RegistryRejectionTest, NamesTheValueAndTheAcceptedForm) {
  Start();
  const ScriptedPlugin plugin(Direct("cpu.sock"), {});
  pb::RegisterRequest request = RequestFor(GetParam().resource, GetParam().endpoint);
  request.set_version(GetParam().version);
  const grpc::Status refused = Register(request);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(refused.error_message(), HasSubstr(GetParam().sentence));
  EXPECT_TRUE(registry_->plugins().List().empty()) << "a rejection changes nothing";
}

const BadRegistration kBadRegistrations[] = {
    {"UnknownVersion", "v2", "cpu", "cpu.sock", "version \"v2\": it is unknown; use \"v1alpha1\""},
    {"NoVersion", "", "cpu", "cpu.sock", "version \"\": it is unknown"},
    {"EmptyResource", "v1alpha1", "", "cpu.sock", "resource name \"\""},
    {"InvalidResource", "v1alpha1", "c p u", "cpu.sock", "resource name \"c p u\""},
    {"EmptyEndpoint", "v1alpha1", "cpu", "", "endpoint \"\": it is not a file name"},
    {"EndpointWithSlash", "v1alpha1", "cpu", "a/cpu.sock",
     "endpoint \"a/cpu.sock\": it is not a file name"},
    {"EndpointOutside", "v1alpha1", "cpu", "../cpu.sock",
     "endpoint \"../cpu.sock\": it is not a file name"},
    {"EndpointParent", "v1alpha1", "cpu", "..", "endpoint \"..\": it is not a file name"},
    {"NoSocket", "v1alpha1", "cpu", "none.sock",
     "is not a socket (links are not followed); listen there before registering"},
};
INSTANTIATE_TEST_SUITE_P(Requests, RegistryRejectionTest, testing::ValuesIn(kBadRegistrations),
                         [](const auto& param_info) { return param_info.param.name; });

TEST_F(RegistryTest, NameOfLivePluginCannotBeTakenByAnother) {
  Start();
  const ScriptedPlugin first(Direct("a.sock"), {});
  const ScriptedPlugin second(Direct("b.sock"), {});
  ASSERT_TRUE(Register(RequestFor("cpu", "a.sock")).ok());
  const grpc::Status refused = Register(RequestFor("cpu", "b.sock"));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_THAT(refused.error_message(), HasSubstr("resource cpu"));
  EXPECT_THAT(refused.error_message(), HasSubstr(Direct("a.sock")));
  EXPECT_EQ(InfoOf("cpu").endpoint, Direct("a.sock"));
}

TEST_F(RegistryTest, NameOfDeadPluginCanBeTaken) {
  Start();
  auto first = std::make_unique<ScriptedPlugin>(Direct("a.sock"), PluginScript{});
  ASSERT_TRUE(Register(RequestFor("cpu", "a.sock")).ok());
  first.reset();
  const ScriptedPlugin second(Direct("b.sock"), {});
  EXPECT_TRUE(Register(RequestFor("cpu", "b.sock")).ok());
  EXPECT_EQ(InfoOf("cpu").endpoint, Direct("b.sock"));
}

TEST_F(RegistryTest, StartRemovesOldSocketsAndNothingElse) {
  {
    const ScriptedPlugin dead(Direct("old.sock"), {});
  }
  std::ofstream(Direct("kubelet_qrm_checkpoint")) << "{}";
  // gRPC removes the file of a server that ends well; a killed one leaves it.
  BindAndLeave(Direct("old.sock"));
  Start();
  EXPECT_FALSE(std::filesystem::exists(Direct("old.sock")));
  EXPECT_TRUE(std::filesystem::exists(Direct("kubelet_qrm_checkpoint")));
  EXPECT_TRUE(std::filesystem::is_socket(Direct("kubelet.sock")));
}

TEST_F(RegistryTest, DirectoriesThatItMakesAreForTheGroupToRead) {
  std::filesystem::remove_all(dir_ / "direct");
  Start();
  for (const char* name : {"direct", "watched"}) {
    struct stat info{};
    ASSERT_EQ(::stat((dir_ / name).c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0750U) << name;
  }
}

// --- the watched directory

TEST_F(RegistryTest, SocketThatAppearsIsRegisteredAndReported) {
  Start();
  const ScriptedPlugin plugin(Watched("cpu.sock"), ScriptFor("cpu"));
  EXPECT_TRUE(Await([&] { return IsLive("cpu"); }));
  EXPECT_EQ(InfoOf("cpu").registered_by, RegisteredBy::kWatcher);
  EXPECT_TRUE(Await([&] { return plugin.statuses() == std::vector<std::string>{""}; }));
}

TEST_F(RegistryTest, SocketThatWasThereBeforeIsRegistered) {
  std::filesystem::create_directory(dir_ / "watched");
  const ScriptedPlugin plugin(Watched("cpu.sock"), ScriptFor("cpu"));
  Start();
  EXPECT_TRUE(Await([&] { return IsLive("cpu"); }));
}

TEST_F(RegistryTest, SocketInDirectoryThatAppearsIsRegistered) {
  Start();
  std::filesystem::create_directory(dir_ / "watched/sub");
  const ScriptedPlugin plugin(Watched("sub/cpu.sock"), ScriptFor("cpu"));
  EXPECT_TRUE(Await([&] { return IsLive("cpu"); }));
}

TEST_F(RegistryTest, SocketThatIsRenamedInIsRegistered) {
  Start();
  const ScriptedPlugin plugin(dir_ / "elsewhere.sock", ScriptFor("cpu"));
  std::filesystem::rename(dir_ / "elsewhere.sock", Watched("cpu.sock"));
  EXPECT_TRUE(Await([&] { return IsLive("cpu"); }));
}

TEST_F(RegistryTest, RemovedSocketMeansThatItsPluginIsNotRunning) {
  Start();
  const ScriptedPlugin plugin(Watched("cpu.sock"), ScriptFor("cpu"));
  ASSERT_TRUE(Await([&] { return IsLive("cpu"); }));
  std::filesystem::remove(Watched("cpu.sock"));
  EXPECT_TRUE(Await([&] { return !IsLive("cpu"); }));
  EXPECT_THAT(InfoOf("cpu").problem, HasSubstr("was removed"));
}

TEST_F(RegistryTest, SocketThatIsRemovedDuringRegistrationLeavesNoLivePlugin) {
  Start();
  std::promise<void> asked;
  std::promise<void> release;
  PluginScript script = ScriptFor("cpu");
  script.options = [&, once = std::make_shared<std::once_flag>(),
                    released = release.get_future().share()](const auto&, auto&) {
    std::call_once(*once, [&] { asked.set_value(); });
    released.wait();
    return OkStatus();
  };
  const ScriptedPlugin plugin(Watched("cpu.sock"), script);
  asked.get_future().wait();
  std::filesystem::remove(Watched("cpu.sock"));
  // The scan that finds this one notices that the other has gone.
  const ScriptedPlugin later(Watched("memory.sock"), ScriptFor("memory"));
  ASSERT_TRUE(Await([&] { return IsLive("memory"); }));
  release.set_value();
  ASSERT_TRUE(Await([&] { return registry_->plugins().Find("cpu").has_value(); }));
  EXPECT_TRUE(Await([&] { return !IsLive("cpu"); }));
  EXPECT_THAT(InfoOf("cpu").problem, HasSubstr("was removed"));
}

TEST_F(RegistryTest, SocketThatIsReplacedDuringRegistrationIsRegistered) {
  Start();
  std::promise<void> asked;
  std::promise<void> release_former;
  PluginScript former = ScriptFor("cpu");
  former.options = [&, once = std::make_shared<std::once_flag>(),
                    released = release_former.get_future().share()](const auto&, auto&) {
    std::call_once(*once, [&] { asked.set_value(); });
    released.wait();
    return OkStatus();
  };
  const ScriptedPlugin before(Watched("cpu.sock"), former);
  asked.get_future().wait();
  std::filesystem::remove(Watched("cpu.sock"));

  std::atomic<int> times_asked{0};
  std::promise<void> release;
  PluginScript script = ScriptFor("cpu");
  script.options = [&, released = release.get_future().share()](const auto&, auto&) {
    ++times_asked;
    released.wait();
    return OkStatus();
  };
  const ScriptedPlugin plugin(Watched("cpu.sock"), script);
  ASSERT_TRUE(Await([&] { return times_asked == 1; }));
  release_former.set_value();  // it is withdrawn, and the present one is asked again
  ASSERT_TRUE(Await([&] { return times_asked == 2; }));
  release.set_value();
  EXPECT_TRUE(Await([&] { return plugin.statuses().size() == 2; }));
  EXPECT_THAT(plugin.statuses(), ElementsAre("", ""));
  EXPECT_TRUE(IsLive("cpu"));
}

TEST_F(RegistryTest, PluginThatIsKilledAndStartedAgainIsRegisteredWithinTwoSeconds) {
  Start();
  auto plugin = std::make_unique<ScriptedPlugin>(Watched("cpu.sock"), ScriptFor("cpu"));
  ASSERT_TRUE(Await([&] { return IsLive("cpu"); }));
  plugin.reset();
  ASSERT_TRUE(Await([&] { return !IsLive("cpu"); }));
  plugin = std::make_unique<ScriptedPlugin>(Watched("cpu.sock"), ScriptFor("cpu"));
  EXPECT_TRUE(Await([&] { return IsLive("cpu"); }, std::chrono::seconds(2)));
}

TEST_F(RegistryTest, SocketsOfOtherManagersAreSkipped) {
  Start();
  PluginScript script = ScriptFor("csi");
  script.identity.set_type("CSIPlugin");
  const ScriptedPlugin foreign(Watched("a-csi.sock"), script);
  const ScriptedPlugin ours(Watched("b-cpu.sock"), ScriptFor("cpu"));
  ASSERT_TRUE(Await([&] { return IsLive("cpu"); }));
  EXPECT_THAT(foreign.statuses(), ElementsAre());
  EXPECT_FALSE(registry_->plugins().Find("csi").has_value());
}

TEST_F(RegistryTest, RejectedPluginGetsTheReasonAndIsTriedAgain) {
  Start();
  PluginScript script = ScriptFor("cpu");
  script.identity.clear_supported_versions();
  script.identity.add_supported_versions("v9");
  const ScriptedPlugin plugin(Watched("cpu.sock"), script);
  EXPECT_TRUE(Await([&] { return plugin.statuses().size() >= 2; }));
  EXPECT_THAT(plugin.statuses().front(), HasSubstr("version \"v9\": it is unknown"));
}

TEST_F(RegistryTest, HiddenSocketsAreIgnored) {
  Start();
  const ScriptedPlugin hidden(Watched(".cpu.sock"), ScriptFor("cpu"));
  const ScriptedPlugin shown(Watched("memory.sock"), ScriptFor("memory"));
  ASSERT_TRUE(Await([&] { return IsLive("memory"); }));
  EXPECT_FALSE(registry_->plugins().Find("cpu").has_value());
}

TEST_F(RegistryTest, SocketThatIsBoundBeforeItListensIsRegistered) {
  Start();
  // A plugin's socket file exists from bind on; this one never listens and is then replaced by a
  // socket with a listener.
  BindAndLeave(Watched("cpu.sock"));
  const ScriptedPlugin plugin(dir_ / "ready.sock", ScriptFor("cpu"));
  std::filesystem::rename(dir_ / "ready.sock", Watched("cpu.sock"));
  EXPECT_TRUE(Await([&] { return IsLive("cpu"); }, std::chrono::seconds(2)));
}

// --- what is known from before

TEST_F(RegistryTest, ResourcesOfTheCheckpointAreNotRunningUntilTheyRegister) {
  Start({"cpu"});
  const PluginInfo before = InfoOf("cpu");
  EXPECT_FALSE(before.live);
  EXPECT_EQ(before.registered_by, RegisteredBy::kCheckpoint);
  EXPECT_THAT(before.problem, HasSubstr("start the plugin"));
  const ScriptedPlugin plugin(Watched("cpu.sock"), ScriptFor("cpu"));
  EXPECT_TRUE(Await([&] { return IsLive("cpu"); }));
}

TEST_F(RegistryTest, ForgottenPluginIsUnknownUntilItRegisters) {
  Start({"cpu"});
  registry_->plugins().Forget("cpu");
  EXPECT_FALSE(registry_->plugins().Find("cpu").has_value());
  const ScriptedPlugin plugin(Watched("cpu.sock"), ScriptFor("cpu"));
  ASSERT_TRUE(Await([&] { return IsLive("cpu"); }));
  registry_->plugins().Forget("cpu");
  EXPECT_TRUE(IsLive("cpu")) << "what is live is not forgotten";
}

TEST_F(RegistryTest, IsGoneWhileAPluginHangs) {
  Start();
  PluginScript script = ScriptFor("cpu");
  std::promise<void> release;
  script.hints = [released = release.get_future().share()](const auto&, auto&) {
    released.wait();
    return OkStatus();
  };
  const ScriptedPlugin plugin(Watched("cpu.sock"), script);
  ASSERT_TRUE(Await([&] { return IsLive("cpu"); }));
  std::thread caller([&] {
    ContainerRequest request;
    request.key = {"uid", "c"};
    request.resource = "cpu";
    EXPECT_FALSE(registry_->plugins()
                     .AskForEach<calls::GetTopologyHints>(
                         {request}, DeadlineAfter(std::chrono::milliseconds(100)))[0]
                     .ok());
  });
  caller.join();
  loop_.Run([this] { registry_.reset(); });
  release.set_value();
}

}  // namespace
}  // namespace qrm::manager::registry_test
