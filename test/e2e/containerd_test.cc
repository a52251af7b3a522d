// The runtime side of the daemon against a real containerd; scripts/containerd.sh starts it and
// this test.
#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "api/base/mutex.h"
#include "manager/runtime/cgroup_cpusets.h"
#include "manager/runtime/cri/cri_client.h"
#include "manager/runtime/nri/nri_plugin.h"
#include "test/e2e/beside_containerd.h"
#include "test/e2e/kubelet.h"
#include "test/support/await.h"
#include "test/support/environment.h"
#include "test/support/loop_thread.h"

namespace qrm::manager::containerd_test {
namespace {

using test::Await;
using test::FromEnvironment;
using test::KubeletBesideContainerd;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

/// Pins every container to CPU 1, or rejects it when its role says so.
class PinToOne final : public RuntimeEvents {
 public:
  std::vector<std::string> log() const {
    const MutexLock lock(mutex_);
    return log_;
  }
  std::size_t synchronized_containers() const {
    const MutexLock lock(mutex_);
    return synchronized_;
  }

  void OnConnected(const RuntimeInfo& runtime) override { Note("connected " + runtime.name); }
  void OnDisconnected(const Status&) override { Note("disconnected"); }
  void OnSynchronize(std::vector<RuntimePod>, std::vector<RuntimeContainer> containers,
                     UpdatesReply reply) override {
    {
      const MutexLock lock(mutex_);
      synchronized_ = containers.size();
    }
    Note("synchronize");
    reply(std::vector<ContainerUpdate>{});
  }
  void OnPodStarted(const RuntimePod& pod) override { Note("pod started " + pod.uid); }
  void OnPodStopped(const RuntimePod& pod) override { Note("pod stopped " + pod.uid); }
  void OnPodRemoved(const RuntimePod& pod) override { Note("pod removed " + pod.uid); }
  void OnCreateContainer(RuntimePod pod, RuntimeContainer container,
                         AdjustmentReply reply) override {
    Note("create " + container.name + " of " + pod.uid);
    if (pod.labels.contains("refuse")) {
      reply(Errorf(StatusCode::kResourceExhausted, "cannot admit: the test says so"));
      return;
    }
    reply(ContainerAdjustment{.resources = {.cpuset_cpus = "1", .cpuset_mems = "0"},
                              .envs = {{"QRM_TEST", "given"}},
                              .annotations = {{"qrm.test/key", "value"}}});
  }
  void OnUpdateContainer(RuntimePod, RuntimeContainer container, LinuxResources requested,
                         UpdatesReply reply) override {
    Note("update " + container.name + " to " + requested.cpuset_cpus);
    reply(std::vector<ContainerUpdate>{});
  }
  void OnStartContainer(const RuntimePod&, const RuntimeContainer&, StartReply reply) override {
    reply(OkStatus());
  }
  void OnContainerStarted(const RuntimePod&, const RuntimeContainer& container) override {
    Note("started " + container.name);
  }
  void OnContainerStopped(const RuntimePod&, const RuntimeContainer& container) override {
    Note("stopped " + container.name);
  }
  void OnContainerRemoved(const RuntimePod&, const RuntimeContainer& container) override {
    Note("removed " + container.name);
  }

 private:
  void Note(std::string line) {
    const MutexLock lock(mutex_);
    log_.push_back(std::move(line));
  }

  mutable Mutex mutex_;
  std::vector<std::string> log_;
  std::size_t synchronized_ = 0;
};

class ContainerdTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(FromEnvironment("QRM_CRI_SOCKET"), "") << "run by scripts/containerd.sh";
    Attach();
  }
  void TearDown() override { Detach(); }

  void Attach() {
    loop_.Run([this] {
      plugin_ = std::make_unique<NriPlugin>(
          loop_.io(), NriOptions{.socket = FromEnvironment("QRM_NRI_SOCKET")}, events_);
      EXPECT_TRUE(plugin_->Start().ok());
    });
    ++attached_;
    ASSERT_TRUE(Await([this] {
      const std::vector<std::string> log = events_.log();
      return std::count(log.begin(), log.end(), "synchronize") == attached_;
    }));
  }
  void Detach() {
    loop_.Run([this] { plugin_.reset(); });
  }

  Status Update(const ContainerUpdate& update) {
    std::promise<Status> result;
    cri_.UpdateResources(update, [&](const Status& status) { result.set_value(status); });
    return result.get_future().get();
  }

  StatusOr<CgroupCpuset> ReadCpuset(const std::string& container_id) {
    QRM_ASSIGN_OR_RETURN(const nlohmann::json info, kubelet_.Inspect(container_id));
    return reader_.ReadByPid(info["pid"].get<uint32_t>());
  }

  test::PodSpec Pod(const std::string& uid) const {
    return {.name = "pod-" + uid, .uid = uid, .container = {.name = "c-" + uid, .milli_cpus = 500}};
  }

  PinToOne events_;
  int attached_ = 0;
  test::LoopThread loop_;
  std::unique_ptr<NriPlugin> plugin_;
  CriClient cri_{loop_.io(), CriOptions{.socket = FromEnvironment("QRM_CRI_SOCKET")}};
  CgroupReader reader_;
  test::Kubelet kubelet_{KubeletBesideContainerd()};
};

TEST_F(ContainerdTest, ContainerIsPinnedBeforeItsFirstInstruction) {
  const StatusOr<test::RunningPod> pod = kubelet_.RunPod(Pod("pinned"));
  ASSERT_TRUE(pod.ok()) << pod.status();
  std::vector<std::string> lines;
  ASSERT_TRUE(Await([&] {
    lines = kubelet_.ReadLog(*pod).value_or(std::vector<std::string>{});
    return !lines.empty() && lines.back().starts_with("cpus ");
  }));
  EXPECT_EQ(lines.back(), "cpus 1 mems 0 cgroup 1");
  EXPECT_THAT(lines, Contains("env QRM_TEST=given"));
  EXPECT_EQ(ReadCpuset(pod->container_id)->cpus, CpuSet{1});
  const StatusOr<nlohmann::json> info = kubelet_.Inspect(pod->container_id);
  ASSERT_TRUE(info.ok());
  EXPECT_EQ((*info)["runtimeSpec"]["annotations"]["qrm.test/key"], "value");

  ASSERT_TRUE(
      Update({.container_id = pod->container_id, .resources = {.cpuset_cpus = "0-1"}}).ok());
  EXPECT_EQ(ReadCpuset(pod->container_id)->cpus, (CpuSet{0, 1}));
  EXPECT_TRUE(
      Await([&] { return kubelet_.ReadLog(*pod)->back() == "cpus 0-1 mems 0 cgroup 0-1"; }));

  EXPECT_TRUE(kubelet_.RemovePod(*pod).ok());
  EXPECT_TRUE(Await([&] { return events_.log().back() == "pod removed pinned"; }));
  EXPECT_THAT(events_.log(), Contains("started c-pinned"));
  EXPECT_THAT(events_.log(), Contains("update c-pinned to 0-1"));
  EXPECT_THAT(events_.log(), Contains("stopped c-pinned"));
}

TEST_F(ContainerdTest, RejectionReachesTheCallerAndLeavesThePluginAttached) {
  test::PodSpec spec = Pod("refused");
  spec.labels["refuse"] = "yes";
  const StatusOr<test::RunningPod> pod = kubelet_.RunPod(spec);
  ASSERT_FALSE(pod.ok());
  EXPECT_THAT(MessageOf(pod.status()), HasSubstr("cannot admit: the test says so"));
  EXPECT_TRUE(plugin_->GetStatus().connected);
}

TEST_F(ContainerdTest, LateComerLearnsWhatExists) {
  Detach();
  const StatusOr<test::RunningPod> pod = kubelet_.RunPod(Pod("early"));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_THAT(events_.log(), Not(Contains(HasSubstr("early"))));
  Attach();
  EXPECT_EQ(events_.synchronized_containers(), 1U);
  EXPECT_TRUE(kubelet_.RemovePod(*pod).ok());
}

}  // namespace
}  // namespace qrm::manager::containerd_test
