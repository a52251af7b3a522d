// The CRI client against a scripted runtime service on a real socket.
#include "manager/runtime/cri/cri_client.h"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "test/support/await.h"
#include "test/support/loop_thread.h"
#include "test/support/scripted_cri.h"
#include "test/support/temp_dir.h"

namespace qrm::manager::cri_client_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

namespace cri = ::runtime::v1;

cri::Container Container(const std::string& id, cri::ContainerState state) {
  cri::Container container;
  container.set_id(id);
  container.set_state(state);
  container.mutable_metadata()->set_name("name-" + id);
  return container;
}

class CriClientTest : public testing::Test {
 protected:
  void StartRuntime() { runtime_ = std::make_unique<test::ScriptedCri>(socket_); }

  Status Update(const ContainerUpdate& update) {
    std::promise<Status> result;
    client_->UpdateResources(update, [&](const Status& status) { result.set_value(status); });
    return result.get_future().get();
  }
  StatusOr<std::vector<RuntimeContainer>> ListContainers() {
    std::promise<StatusOr<std::vector<RuntimeContainer>>> result;
    client_->ListContainers([&](auto containers) { result.set_value(std::move(containers)); });
    return result.get_future().get();
  }
  StatusOr<std::vector<RuntimePod>> ListPods() {
    std::promise<StatusOr<std::vector<RuntimePod>>> result;
    client_->ListPods([&](auto pods) { result.set_value(std::move(pods)); });
    return result.get_future().get();
  }
  StatusOr<RuntimeInfo> GetVersion() {
    std::promise<StatusOr<RuntimeInfo>> result;
    client_->GetVersion([&](auto version) { result.set_value(std::move(version)); });
    return result.get_future().get();
  }

  test::TempDir dir_;
  const std::string socket_ = dir_ / "cri.sock";
  std::unique_ptr<test::ScriptedCri> runtime_;
  test::LoopThread loop_;
  std::unique_ptr<CriClient> client_ = std::make_unique<CriClient>(
      loop_.io(), CriOptions{.socket = socket_, .timeout = std::chrono::seconds(5)});
};

TEST_F(CriClientTest, AsksForTheRuntimesNameAndVersion) {
  StartRuntime();
  const StatusOr<RuntimeInfo> info = GetVersion();
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->name, "containerd");
}

TEST_F(CriClientTest, UpdatesWhatIsSetAndNothingElse) {
  StartRuntime();
  ASSERT_TRUE(Update({.container_id = "c",
                      .resources = {.cpuset_cpus = "0-3", .hugepage_limit_bytes = {{"2MB", 5}}}})
                  .ok());
  const auto updates = runtime_->updates();
  ASSERT_THAT(updates, SizeIs(1));
  EXPECT_EQ(updates[0].container_id(), "c");
  EXPECT_EQ(updates[0].linux().cpuset_cpus(), "0-3");
  EXPECT_EQ(updates[0].linux().cpuset_mems(), "");
  EXPECT_EQ(updates[0].linux().cpu_shares(), 0);
  EXPECT_THAT(updates[0].linux().hugepage_limits(), SizeIs(0));
}

TEST_F(CriClientTest, LiftsAQuotaAndLeavesWhatIsZero) {  // 0 would be "no change"
  StartRuntime();
  ASSERT_TRUE(Update({.container_id = "c", .resources = {.cpu_quota_us = -1}}).ok());
  EXPECT_EQ(runtime_->updates()[0].linux().cpu_quota(), -1);
  EXPECT_TRUE(Update({.container_id = "c", .resources = {.cpu_quota_us = 0}}).ok());
  EXPECT_THAT(runtime_->updates(), SizeIs(1));
}

TEST_F(CriClientTest, SendsNoUpdateThatWouldChangeNothing) {
  StartRuntime();
  EXPECT_TRUE(Update({.container_id = "c", .resources = {.cpuset_cpus = ""}}).ok());
  EXPECT_THAT(runtime_->updates(), SizeIs(0));
}

TEST_F(CriClientTest, SendsAnUpdateWhenTheRuntimeHasAnsweredTheContainersUpdateBefore) {
  StartRuntime();
  runtime_->SetDelay(std::chrono::milliseconds(50));
  std::promise<std::size_t> sent;
  client_->UpdateResources(
      {.container_id = "c", .resources = {.cpuset_cpus = "0"}},
      [&](const Status& /*status*/) { sent.set_value(runtime_->UpdatesOf("c").size()); });
  EXPECT_TRUE(Update({.container_id = "c", .resources = {.cpuset_cpus = "1"}}).ok());
  EXPECT_EQ(sent.get_future().get(), 1);
  const auto updates = runtime_->updates();
  ASSERT_THAT(updates, SizeIs(2));
  EXPECT_EQ(updates[1].linux().cpuset_cpus(), "1");
}

TEST_F(CriClientTest, ListsContainersWithTheirStates) {
  StartRuntime();
  runtime_->PutContainer(Container("a", cri::CONTAINER_CREATED));
  runtime_->PutContainer(Container("b", cri::CONTAINER_RUNNING));
  cri::Container ended = Container("c", cri::CONTAINER_EXITED);
  ended.mutable_metadata()->set_attempt(2);
  runtime_->PutContainer(ended);
  runtime_->PutContainer(Container("d", cri::CONTAINER_UNKNOWN));
  const auto containers = ListContainers();
  ASSERT_TRUE(containers.ok()) << containers.status();
  ASSERT_THAT(*containers, SizeIs(4));
  EXPECT_EQ((*containers)[0].state, RuntimeContainerState::kCreated);
  EXPECT_EQ((*containers)[1].state, RuntimeContainerState::kRunning);
  EXPECT_EQ((*containers)[1].name, "name-b");
  EXPECT_EQ((*containers)[2].state, RuntimeContainerState::kStopped);
  EXPECT_EQ((*containers)[2].attempt, 2U);
  EXPECT_EQ((*containers)[3].state, RuntimeContainerState::kUnknown);
}

TEST_F(CriClientTest, ListsPods) {
  StartRuntime();
  cri::PodSandbox pod;
  pod.set_id("sandbox");
  pod.mutable_metadata()->set_uid("uid");
  pod.mutable_metadata()->set_namespace_("default");
  (*pod.mutable_labels())["role"] = "web";
  runtime_->PutPod(pod);
  const auto pods = ListPods();
  ASSERT_TRUE(pods.ok()) << pods.status();
  EXPECT_THAT(
      *pods,
      ElementsAre(RuntimePod{
          .id = "sandbox", .uid = "uid", .pod_namespace = "default", .labels = {{"role", "web"}}}));
}

TEST_F(CriClientTest, ReportsPodsThatHaveStopped) {
  StartRuntime();
  cri::PodSandbox pod;
  pod.set_id("sandbox");
  pod.set_state(cri::SANDBOX_NOTREADY);
  runtime_->PutPod(pod);
  const auto pods = ListPods();
  ASSERT_TRUE(pods.ok()) << pods.status();
  EXPECT_THAT(*pods, ElementsAre(RuntimePod{.id = "sandbox", .ready = false}));
}

TEST_F(CriClientTest, TakesListsBeyondGrpcsDefaultLimit) {
  StartRuntime();
  cri::Container large = Container("large", cri::CONTAINER_RUNNING);
  (*large.mutable_annotations())["x"] = std::string(6 << 20, 'x');
  runtime_->PutContainer(large);
  const auto containers = ListContainers();
  ASSERT_TRUE(containers.ok()) << containers.status();
  EXPECT_THAT(*containers, SizeIs(1));
}

TEST_F(CriClientTest, PassesTheRuntimesErrorOn) {
  StartRuntime();
  runtime_->FailUpdates(Errorf(StatusCode::kNotFound, "no such container"));
  const Status status = Update({.container_id = "c", .resources = {.cpuset_cpus = "0"}});
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(MessageOf(status), HasSubstr("cannot update container c: no such container"));
}

TEST_F(CriClientTest, NamesSocketWithoutAServer) {
  const Status status = GetVersion().status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(MessageOf(status), HasSubstr(socket_));
  EXPECT_THAT(MessageOf(status), HasSubstr("start the runtime, or set cri-socket"));
}

TEST_F(CriClientTest, GivesUpOnSlowRuntime) {
  StartRuntime();
  runtime_->SetDelay(std::chrono::milliseconds(300));
  client_ = std::make_unique<CriClient>(
      loop_.io(), CriOptions{.socket = socket_, .timeout = std::chrono::milliseconds(50)});
  EXPECT_EQ(GetVersion().status().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(CriClientTest, GivesUpOnAnUpdateThatIsStuckInTheKernel) {
  StartRuntime();
  runtime_->SetDelay(std::chrono::milliseconds(300));
  client_ = std::make_unique<CriClient>(
      loop_.io(), CriOptions{.socket = socket_, .timeout = std::chrono::milliseconds(50)});
  EXPECT_EQ(Update({.container_id = "c", .resources = {.cpuset_cpus = "0"}}).code(),
            StatusCode::kDeadlineExceeded);
}

TEST_F(CriClientTest, FailsAnUpdateInWhichTheRuntimeEnds) {
  StartRuntime();
  runtime_->SetDelay(std::chrono::milliseconds(100));
  std::promise<Status> result;
  client_->UpdateResources({.container_id = "c", .resources = {.cpuset_cpus = "0"}},
                           [&](const Status& status) { result.set_value(status); });
  ASSERT_TRUE(test::Await([&] { return runtime_->updates().size() == 1; }));
  runtime_.reset();
  EXPECT_THAT(MessageOf(result.get_future().get()), testing::HasSubstr("cannot update"));
  StartRuntime();
  EXPECT_TRUE(test::Await(
      [&] { return Update({.container_id = "c", .resources = {.cpuset_cpus = "0"}}).ok(); }));
}

TEST_F(CriClientTest, WorksAgainAfterRuntimeRestart) {
  StartRuntime();
  ASSERT_TRUE(GetVersion().ok());
  runtime_.reset();
  EXPECT_EQ(GetVersion().status().code(), StatusCode::kUnavailable);
  StartRuntime();
  EXPECT_TRUE(test::Await([&] { return GetVersion().ok(); }));
}

TEST_F(CriClientTest, CallsNothingBackAfterItsEnd) {
  StartRuntime();
  runtime_->SetDelay(std::chrono::milliseconds(300));
  bool called = false;
  loop_.Run([&] {
    client_->GetVersion([&](const StatusOr<RuntimeInfo>&) { called = true; });
    client_.reset();
  });
  loop_.Run([] {});
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace qrm::manager::cri_client_test
