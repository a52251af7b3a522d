// The control socket, called as plugins and qrmctl call it.
#include "manager/control/control_server.h"

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/log_settings.h"
#include "api/base/unix_socket.h"
#include "api/proto/qrm/v1/control.grpc.pb.h"
#include "test/support/await.h"
#include "test/support/fake_node_services.h"
#include "test/support/fake_plugins.h"
#include "test/support/fake_snapshots.h"
#include "test/support/sample_node.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::control_server_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

class ControlServerTest : public testing::Test {
 protected:
  ControlServerTest() {
    plugins_.pools.emplace(
        "cpu", std::vector<sdk::Pool>{{.name = "online", .cpus = {0, 1, 2, 3}, .roles = {"web"}},
                                      {.name = "offline", .cpus = {4, 5, 6, 7}}});
    const Status started = server_.Start(path_);
    EXPECT_TRUE(started.ok()) << started;
    stub_ = v1::Control::NewStub(
        grpc::CreateChannel("unix:" + path_, grpc::InsecureChannelCredentials()));
  }

  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (v1::Control::Stub::*method)(grpc::ClientContext*, const Request&,
                                                              Response*),
                    const Request& request, Response& response) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
    return ((*stub_).*method)(&context, request, &response);
  }

  grpc::Status SetPools(const std::map<std::string, std::string>& cpus_by_pool) {
    v1::SetPoolsRequest request;
    request.mutable_cpus_by_pool()->insert(cpus_by_pool.begin(), cpus_by_pool.end());
    return Call(&v1::Control::Stub::SetPools, request, set_);
  }

  test::TempDir dir_;
  const std::string path_ = dir_ / "control.sock";
  test::FakeSnapshots snapshots_;
  test::FakePlugins plugins_;
  test::FakeNodeServices node_;
  const Machine machine_ = test::SampleMachine();
  ControlServer server_{snapshots_, plugins_, machine_, node_};
  std::unique_ptr<v1::Control::Stub> stub_;
  v1::SetPoolsResponse set_;
};

TEST_F(ControlServerTest, SocketIsForItsOwnerOnly) {
  struct stat info{};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

/// Whether user `uid` gets an answer from the socket at `path`, instead of a closed connection.
bool IsServed(const std::string& path, uid_t uid) {
  bool served = false;
  std::thread([&] {
    // The system call changes this thread only; the library's function changes all threads.
    if (syscall(SYS_setresuid, uid, uid, uid) != 0) {
      return;
    }
    const std::optional<sockaddr_un> address = SocketAddress(path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char byte = 0;
    served = address.has_value() && fd >= 0 &&
             connect(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof(*address)) == 0 &&
             read(fd, &byte, 1) == 1;  // HTTP/2 servers greet
    close(fd);
  }).join();
  return served;
}

TEST_F(ControlServerTest, UsersOfControlUidsAreServedAndNoOthers) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can change the user";
  }
  ASSERT_EQ(chmod(dir_.path().c_str(), 0755), 0);
  constexpr uid_t kListed = 12345;
  ControlServer server(snapshots_, plugins_, machine_, node_, {.allowed_uids = {kListed}});
  const std::string path = dir_ / "made/control.sock";
  ASSERT_TRUE(server.Start(path).ok());
  EXPECT_TRUE(IsServed(path, kListed));
  EXPECT_FALSE(IsServed(path, kListed + 1));
}

TEST_F(ControlServerTest, StatusJoinsTheDaemonAndTheState) {
  NodeStatus status;
  status.topology_policy = "best-effort";
  node_.SetStatus(status);
  snapshots_.Apply(test::Admit(test::SamplePod("web"), "main", {}));
  v1::GetStatusResponse response;
  ASSERT_TRUE(Call(&v1::Control::Stub::GetStatus, {}, response).ok());
  EXPECT_EQ(response.topology_policy(), "best-effort");
  EXPECT_EQ(response.pods(), 1u);
}

TEST_F(ControlServerTest, AnUnknownPodIsNotFound) {
  v1::ListPodsRequest request;
  request.set_pod("web");
  v1::ListPodsResponse response;
  const grpc::Status status = Call(&v1::Control::Stub::ListPods, request, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(ControlServerTest, TopologyShowsTheUseOfEachNode) {
  v1::GetTopologyResponse response;
  ASSERT_TRUE(Call(&v1::Control::Stub::GetTopology, {}, response).ok());
  EXPECT_THAT(response.use(), SizeIs(2));
}

TEST_F(ControlServerTest, ForgettingAPluginIsADryRunUnlessConfirmed) {
  node_.records = checkpoint::PluginRecords{.plugin = "cpu",
                                            .allocations = {{.key = {"uid-web", "main"},
                                                             .pod_namespace = "shop",
                                                             .pod_name = "web",
                                                             .resource = "cpu",
                                                             .allocation = test::OwnCpus("1-2")}},
                                            .pending_removals = {"uid-gone"}};
  v1::ForgetPluginRequest request;
  request.set_resource_name("cpu");
  v1::ForgetPluginResponse response;
  ASSERT_TRUE(Call(&v1::Control::Stub::ForgetPlugin, request, response).ok());
  request.set_apply(true);
  ASSERT_TRUE(Call(&v1::Control::Stub::ForgetPlugin, request, response).ok());
  EXPECT_THAT(node_.forgotten,
              ElementsAre(Pair("cpu", Forget::kOnlyTell), Pair("cpu", Forget::kApply)));
  ASSERT_THAT(response.allocations(), SizeIs(1));
  EXPECT_EQ(response.allocations(0).pod_name(), "web");
  EXPECT_EQ(response.allocations(0).allocation().value(), "1-2");
  EXPECT_THAT(response.pending_removals(), ElementsAre("uid-gone"));
}

TEST_F(ControlServerTest, DryRunCarriesThePodAndItsReport) {
  node_.dry_run = DryRunReport{
      .result = DryRunReport::Result::kRejected,
      .message = "no room",
      .decisions = {{.trace = {.key = {"dry-run-1", "main"}, .pod_name = "web", .json = "{}"}}},
      .notes = {"a note"}};
  v1::DryRunRequest request;
  request.set_pod("bytes of a pod");
  v1::DryRunResponse response;
  ASSERT_TRUE(Call(&v1::Control::Stub::DryRun, request, response).ok());
  EXPECT_EQ(node_.tried_pod, "bytes of a pod");
  EXPECT_EQ(response.result(), "rejected");
  EXPECT_EQ(response.message(), "no room");
  EXPECT_THAT(response.notes(), ElementsAre("a note"));
  ASSERT_THAT(response.decisions(), SizeIs(1));
  EXPECT_EQ(response.decisions(0).container(), "main");
  EXPECT_EQ(response.decisions(0).json(), "{}");

  node_.dry_run = Errorf(StatusCode::kInvalidArgument, "it has no name");
  const grpc::Status refused = Call(&v1::Control::Stub::DryRun, request, response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused.error_message(), "it has no name");
}

TEST_F(ControlServerTest, AnnouncePodCarriesThePodAndWhatIsWrongWithIt) {
  v1::AnnouncePodRequest request;
  request.set_pod("bytes of a pod");
  v1::AnnouncePodResponse response;
  ASSERT_TRUE(Call(&v1::Control::Stub::AnnouncePod, request, response).ok());
  EXPECT_EQ(node_.announced_pod, "bytes of a pod");

  node_.announced = Errorf(StatusCode::kInvalidArgument, "it has no name");
  const grpc::Status refused = Call(&v1::Control::Stub::AnnouncePod, request, response);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(refused.error_message(), "it has no name");
}

TEST_F(ControlServerTest, NotifyChangedStartsAReconcile) {
  v1::NotifyChangedRequest request;
  request.set_resource_name("nic");
  v1::NotifyChangedResponse response;
  ASSERT_TRUE(Call(&v1::Control::Stub::NotifyChanged, request, response).ok());
  EXPECT_THAT(node_.reconciles(), ElementsAre("nic"));
}

TEST_F(ControlServerTest, PoolsAreOfTheCpuPluginUnlessAnotherIsNamed) {
  v1::GetPoolsResponse response;
  ASSERT_TRUE(Call(&v1::Control::Stub::GetPools, {}, response).ok());
  ASSERT_THAT(response.pools(), SizeIs(2));
  EXPECT_EQ(response.pools(0).name(), "online");
  EXPECT_THAT(response.pools(0).roles(), ElementsAre("web"));

  v1::GetPoolsRequest request;
  request.set_resource_name("nic");
  const grpc::Status status = Call(&v1::Control::Stub::GetPools, request, response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("plugin nic"));
}

TEST_F(ControlServerTest, SetPoolsChangesThemAndReconcilesAtOnce) {
  ASSERT_TRUE(SetPools({{"online", "0-1"}}).ok());
  ASSERT_THAT(set_.pools(), SizeIs(2));
  EXPECT_EQ(set_.pools(0).cpus(), "0-1");
  EXPECT_THAT(node_.reconciles(), ElementsAre("cpu"));
}

TEST_F(ControlServerTest, RejectsARequestWithAFieldThatItDoesNotKnow) {
  v1::ListPodsRequest pods;
  v1::SetPoolsRequest pools;
  (*pools.mutable_cpus_by_pool())["online"] = "0-1";
  for (google::protobuf::Message* const request :
       std::initializer_list<google::protobuf::Message*>{&pods, &pools}) {
    request->GetReflection()->MutableUnknownFields(request)->AddVarint(77,
                                                                       1);  // of a later release
  }
  v1::ListPodsResponse listed;
  const grpc::Status list = Call(&v1::Control::Stub::ListPods, pods, listed);
  EXPECT_EQ(list.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(list.error_message(),
              AllOf(HasSubstr("cannot answer as qrmd "),
                    HasSubstr("does not know field 77 of ListPodsRequest; upgrade qrmd")));
  EXPECT_EQ(Call(&v1::Control::Stub::SetPools, pools, set_).error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(plugins_.pools.at("cpu")->front().cpus, CpuSet({0, 1, 2, 3})) << "nothing is set";
}

TEST_F(ControlServerTest, LogAndEventsShowWhichUserChangedWhichPoolToWhichCpus) {
  std::string logged;
  log::SetSink([&](log::Level, const std::string& line) { logged += line + "\n"; });
  const bool set = SetPools({{"online", "0-1"}}).ok();
  log::SetSink(nullptr);
  ASSERT_TRUE(set);
  EXPECT_THAT(logged, HasSubstr(fmt::format("\"pools changed\" resource=cpu pools=\"online: 0-3 -> "
                                            "0-1\" by=\"uid {}, pid {}\"",
                                            ::getuid(), ::getpid())));
  ASSERT_THAT(node_.noted, SizeIs(1));
  EXPECT_EQ(node_.noted[0].type, "pool");
  EXPECT_EQ(node_.noted[0].message, "pools of cpu set: online: 0-3 -> 0-1");
  EXPECT_EQ(node_.noted[0].by, fmt::format("uid {}, pid {}", ::getuid(), ::getpid()));
}

TEST_F(ControlServerTest, LogLevelChangeIsLoggedWithTheUser) {
  std::string logged;
  log::SetSink([&](log::Level, const std::string& line) { logged += line + "\n"; });
  v1::SetLogLevelRequest request;
  request.set_level("error");
  v1::SetLogLevelResponse response;
  const grpc::Status set = Call(&v1::Control::Stub::SetLogLevel, request, response);
  log::SetSink(nullptr);
  const log::Level level = log::CurrentLevel();
  log::SetLevel(log::Level::kInfo);
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(response.former_level(), "info");
  EXPECT_EQ(level, log::Level::kError);
  EXPECT_THAT(logged, HasSubstr(fmt::format("\"log level set\" from=info to=error by=\"uid {},",
                                            ::getuid())));
  request.set_level("loud");
  EXPECT_EQ(Call(&v1::Control::Stub::SetLogLevel, request, response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ControlServerTest, PoolsOfABuiltInPluginThatTheDiskRejectsAreSetBack) {
  plugins_.infos = {{.resource = "cpu", .registered_by = RegisteredBy::kBuiltIn, .live = true}};
  node_.kept = Errorf(StatusCode::kResourceExhausted, "the disk is full");
  const grpc::Status status = SetPools({{"online", "0-1"}});
  EXPECT_THAT(status.error_message(), HasSubstr("the disk is full"));
  EXPECT_EQ(ToString(plugins_.pools.at("cpu")->front().cpus), "0-3");
  EXPECT_THAT(node_.reconciles(), IsEmpty());

  node_.kept = OkStatus();
  EXPECT_TRUE(SetPools({{"online", "0-1"}}).ok());
  EXPECT_EQ(ToString(plugins_.pools.at("cpu")->front().cpus), "0-1");
}

TEST_F(ControlServerTest, PoolsOfABuiltInPluginAreNotTouchedWhileTheDiskRejects) {
  plugins_.infos = {{.resource = "cpu", .registered_by = RegisteredBy::kBuiltIn, .live = true}};
  node_.disk = Errorf(StatusCode::kResourceExhausted, "the disk is full");
  plugins_.HangPools();  // a call to the plugin would not be answered
  const grpc::Status status = SetPools({{"online", "0-1"}});
  EXPECT_THAT(status.error_message(), HasSubstr("cannot save the pools of cpu: the disk is full"));
  EXPECT_EQ(plugins_.waiting_pools(), 0U);
  EXPECT_THAT(node_.noted, IsEmpty());
}

TEST_F(ControlServerTest, PoolsOfAPluginThatHangsAreAnsweredWhenItDoes) {
  plugins_.HangPools();
  auto asked = std::async(std::launch::async, [this] {
    v1::GetPoolsResponse response;
    return Call(&v1::Control::Stub::GetPools, {}, response).error_message();
  });
  auto changed = std::async(std::launch::async, [this] { return SetPools({{"online", "0-1"}}); });
  ASSERT_TRUE(test::Await([this] { return plugins_.waiting_pools() == 2; }));
  v1::GetStatusResponse status;
  EXPECT_TRUE(Call(&v1::Control::Stub::GetStatus, {}, status).ok());
  EXPECT_THAT(node_.reconciles(), IsEmpty());
  plugins_.ReleasePools(Errorf(StatusCode::kDeadlineExceeded, "plugin cpu is slow"));
  EXPECT_EQ(asked.get(), "plugin cpu is slow");
  EXPECT_FALSE(changed.get().ok());
  EXPECT_THAT(node_.reconciles(), IsEmpty());
}

TEST_F(ControlServerTest, SetPoolsRejectsMalformedCpusBeforeThePluginSeesThem) {
  const grpc::Status status = SetPools({{"online", "0-x"}});
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("cannot set pool online"));
  EXPECT_EQ(SetPools({}).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(node_.reconciles(), IsEmpty());
}

}  // namespace
}  // namespace qrm::manager::control_server_test
