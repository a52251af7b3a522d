// The NRI plugin against a scripted container runtime on a real socket.
#include "manager/runtime/nri_plugin.h"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/mutex.h"
#include "test/support/await.h"
#include "test/support/loop_thread.h"
#include "test/support/scripted_runtime.h"
#include "test/support/temp_dir.h"

namespace qrm::manager {
namespace {

using std::chrono::milliseconds;
using test::Await;
using test::ScriptedRuntime;
using test::ScriptedRuntimeOptions;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

namespace wire = ::nri::pkg::api::v1alpha1;

/// Notes what happens; answers as a test tells it to, at once by default.
class RecordedEvents final : public RuntimeEvents {
 public:
  std::function<void(const RuntimeContainer&, AdjustmentReply)> on_create =
      [](const RuntimeContainer&, const AdjustmentReply& reply) { reply(ContainerAdjustment{}); };
  std::function<void(const LinuxResources&, UpdatesReply)> on_update =
      [](const LinuxResources&, const UpdatesReply& reply) {
        reply(std::vector<ContainerUpdate>{});
      };
  std::vector<ContainerUpdate> sync_updates;

  std::vector<std::string> log() const {
    const MutexLock lock(mutex_);
    return log_;
  }
  std::vector<RuntimePod> pods() const {
    const MutexLock lock(mutex_);
    return pods_;
  }
  std::vector<RuntimeContainer> containers() const {
    const MutexLock lock(mutex_);
    return containers_;
  }

  void OnConnected(const RuntimeInfo& runtime) override { Note("connected " + runtime.version); }
  void OnDisconnected(const Status&) override { Note("disconnected"); }
  void OnSynchronize(std::vector<RuntimePod> pods, std::vector<RuntimeContainer> containers,
                     UpdatesReply reply) override {
    {
      const MutexLock lock(mutex_);
      pods_ = std::move(pods);
      containers_ = std::move(containers);
    }
    Note("synchronize");
    reply(sync_updates);
  }
  void OnPodStarted(const RuntimePod& pod) override { Note("pod started " + pod.uid); }
  void OnPodUpdated(const RuntimePod& pod) override { Note("pod updated " + pod.uid); }
  void OnPodStopped(const RuntimePod& pod) override { Note("pod stopped " + pod.uid); }
  void OnPodRemoved(const RuntimePod& pod) override { Note("pod removed " + pod.uid); }
  void OnCreateContainer(RuntimePod, RuntimeContainer container, AdjustmentReply reply) override {
    Note("create " + container.name);
    on_create(container, std::move(reply));
  }
  void OnUpdateContainer(RuntimePod, RuntimeContainer container, LinuxResources requested,
                         UpdatesReply reply) override {
    Note("update " + container.name);
    on_update(requested, std::move(reply));
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
  std::vector<RuntimePod> pods_;
  std::vector<RuntimeContainer> containers_;
};

wire::PodSandbox Pod(const std::string& uid) {
  wire::PodSandbox pod;
  pod.set_id("sandbox-" + uid);
  pod.set_uid(uid);
  pod.set_name("pod-" + uid);
  pod.set_namespace_("default");
  return pod;
}

wire::Container Container(const std::string& name) {
  wire::Container container;
  container.set_id("id-" + name);
  container.set_name(name);
  return container;
}

class NriPluginTest : public testing::Test {
 protected:
  void TearDown() override { StopPlugin(); }

  void StartRuntime(ScriptedRuntimeOptions options = {}) {
    runtime_ = std::make_unique<ScriptedRuntime>(dir_ / "nri.sock", std::move(options));
  }
  void StartPlugin() {
    options_.socket = dir_ / "nri.sock";
    loop_ = std::make_unique<test::LoopThread>();
    loop_->Run([this] {
      plugin_ = std::make_unique<NriPlugin>(loop_->io(), options_, events_);
      EXPECT_TRUE(plugin_->Start().ok());
    });
  }
  void StopPlugin() {
    if (plugin_ != nullptr) {
      loop_->Run([this] { plugin_.reset(); });
      loop_.reset();
    }
  }
  /// A runtime and a plugin that it has synchronized.
  void Attach(ScriptedRuntimeOptions options = {}) {
    StartRuntime(std::move(options));
    StartPlugin();
    ASSERT_TRUE(runtime_->WaitForSynchronizations(1));
  }

  test::TempDir dir_;
  NriOptions options_;
  RecordedEvents events_;
  std::unique_ptr<ScriptedRuntime> runtime_;
  std::unique_ptr<test::LoopThread> loop_;
  std::unique_ptr<NriPlugin> plugin_;
};

TEST_F(NriPluginTest, RegistersByNameAndIndex) {
  Attach();
  EXPECT_EQ(runtime_->registration().plugin_name(), "qrm");
  EXPECT_EQ(runtime_->registration().plugin_idx(), "90");
  EXPECT_THAT(events_.log(), ElementsAre("connected v1.7.24", "synchronize"));
  const NriStatus status = plugin_->GetStatus();
  EXPECT_TRUE(status.connected);
  EXPECT_EQ(status.runtime.name, "containerd");
  EXPECT_EQ(status.connects, 1U);
}

TEST_F(NriPluginTest, IsTakenOnByRuntimesOfEveryAge) {
  for (const auto& [version, known] :
       std::vector<std::pair<std::string, int32_t>>{{"v1.7.16", 0x7ff}, {"v2.2.0", 0x3fff}}) {
    Attach({.version = version, .known_events = known});
    EXPECT_NE(runtime_->subscribed_events() & 0x8, 0) << version;
    StopPlugin();
    runtime_.reset();
  }
}

TEST_F(NriPluginTest, SynchronizesFromChunksAsFromOne) {
  ScriptedRuntimeOptions script{.synchronize_chunks = 3};
  for (int i = 0; i < 7; ++i) {
    script.pods.push_back(Pod(std::to_string(i)));
    script.containers.push_back(Container(std::to_string(i)));
  }
  events_.sync_updates = {{.container_id = "id-3", .resources = {.cpuset_cpus = "0-1"}}};
  Attach(script);
  EXPECT_THAT(events_.pods(), SizeIs(7));
  EXPECT_THAT(events_.containers(), SizeIs(7));
  const auto responses = runtime_->synchronize_responses();
  ASSERT_THAT(responses, SizeIs(3));
  EXPECT_THAT(responses[0].update(), IsEmpty());
  EXPECT_THAT(responses[1].update(), IsEmpty());
  ASSERT_THAT(responses[2].update(), SizeIs(1));
  EXPECT_EQ(responses[2].update(0).linux().resources().cpu().cpus(), "0-1");
}

TEST_F(NriPluginTest, TakesMessagesThatExceedTheSendingLimit) {
  ScriptedRuntimeOptions script;
  wire::Container container = Container("large");
  container.add_env("X=" + std::string(8 << 20, 'x'));
  script.containers.push_back(container);
  Attach(script);
  ASSERT_THAT(events_.containers(), SizeIs(1));
  EXPECT_EQ(events_.containers()[0].env[0].size(), (8U << 20) + 2);
}

TEST_F(NriPluginTest, TakesMessagesCutAnywhere) {
  ScriptedRuntimeOptions script{.framing = ScriptedRuntimeOptions::Framing::kFragments};
  script.pods.push_back(Pod("1"));
  Attach(script);
  EXPECT_THAT(events_.pods(), SizeIs(1));
  EXPECT_TRUE(runtime_->CreateContainer(Pod("1"), Container("c")).ok());
}

TEST_F(NriPluginTest, SendsEverySizeAsTheRuntimeCanReadIt) {
  std::size_t size = 0;
  events_.on_create = [&](const RuntimeContainer&, const RuntimeEvents::AdjustmentReply& reply) {
    reply(ContainerAdjustment{.envs = {{"X", std::string(size, 'x')}}});
  };
  Attach();
  for (const std::size_t next : {10UL, 4000UL, 4060UL, 4096UL, 5000UL, 20000UL, 3000000UL}) {
    size = next;
    const auto response = runtime_->CreateContainer(Pod("1"), Container("c"));
    ASSERT_TRUE(response.ok()) << next << ": " << response.status() << runtime_->violation();
    EXPECT_EQ(response->adjust().env(0).value().size(), next);
  }
  EXPECT_EQ(runtime_->violation(), "");
}

TEST_F(NriPluginTest, AnswersWithErrorInsteadOfMessageThatCannotBeRead) {
  events_.on_create = [](const RuntimeContainer&, const RuntimeEvents::AdjustmentReply& reply) {
    reply(ContainerAdjustment{.envs = {{"X", std::string(5 << 20, 'x')}}});
  };
  Attach();
  const auto response = runtime_->CreateContainer(Pod("1"), Container("c"));
  EXPECT_EQ(response.status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(runtime_->Call("Shutdown", "").ok());
}

TEST_F(NriPluginTest, PutsAdjustmentInPlace) {
  events_.on_create = [](const RuntimeContainer&, const RuntimeEvents::AdjustmentReply& reply) {
    reply(ContainerAdjustment{
        .resources = {.cpu_quota_us = -1, .cpuset_cpus = "2-21", .cpuset_mems = "0"},
        .envs = {{"NIC", "fd::20"}},
        .annotations = {{"netns", "/ns1"}},
        .mounts = {{.container_path = "/in", .host_path = "/out", .read_only = true}},
        .devices = {{.container_path = "/dev/n", .host_path = "/dev/null", .permissions = "rw"}}});
  };
  Attach();
  const auto response = runtime_->CreateContainer(Pod("1"), Container("c"));
  ASSERT_TRUE(response.ok()) << response.status();
  const wire::ContainerAdjustment& adjust = response->adjust();
  EXPECT_EQ(adjust.linux().resources().cpu().cpus(), "2-21");
  EXPECT_EQ(adjust.linux().resources().cpu().mems(), "0");
  EXPECT_EQ(adjust.linux().resources().cpu().quota().value(), -1);
  EXPECT_EQ(adjust.env(0).key(), "NIC");
  EXPECT_EQ(adjust.annotations().at("netns"), "/ns1");
  EXPECT_THAT(adjust.mounts(0).options(), ElementsAre("rbind", "rprivate", "ro"));
  EXPECT_EQ(adjust.linux().devices(0).major(), 1);
  EXPECT_EQ(adjust.linux().devices(0).minor(), 3);
}

TEST_F(NriPluginTest, ClaimsNoFieldThatIsNotSet) {
  events_.on_create = [](const RuntimeContainer&, const RuntimeEvents::AdjustmentReply& reply) {
    reply(ContainerAdjustment{.resources = {.cpuset_cpus = "0"}});
  };
  Attach();
  const auto response = runtime_->CreateContainer(Pod("1"), Container("c"));
  ASSERT_TRUE(response.ok());
  const wire::LinuxCPU& cpu = response->adjust().linux().resources().cpu();
  EXPECT_FALSE(cpu.has_shares() || cpu.has_quota() || cpu.has_period());
  EXPECT_FALSE(response->adjust().linux().resources().has_memory());
}

TEST_F(NriPluginTest, FailsCreationWithTheHandlersSentence) {
  events_.on_create = [](const RuntimeContainer&, const RuntimeEvents::AdjustmentReply& reply) {
    reply(Errorf(StatusCode::kResourceExhausted, "cannot admit: no room"));
  };
  Attach();
  const Status status = runtime_->CreateContainer(Pod("1"), Container("c")).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(MessageOf(status), "cannot admit: no room");
  EXPECT_TRUE(plugin_->GetStatus().connected);
}

TEST_F(NriPluginTest, FailsCreationForDeviceThatIsNotThere) {
  events_.on_create = [](const RuntimeContainer&, const RuntimeEvents::AdjustmentReply& reply) {
    reply(ContainerAdjustment{.devices = {{.host_path = "/dev/not-there"}}});
  };
  Attach();
  const Status status = runtime_->CreateContainer(Pod("1"), Container("c")).status();
  EXPECT_THAT(MessageOf(status), HasSubstr("/dev/not-there"));
}

TEST_F(NriPluginTest, TakesReplyFromAnotherThread) {
  std::thread other;
  events_.on_create = [&](const RuntimeContainer&, const RuntimeEvents::AdjustmentReply& reply) {
    other = std::thread([reply] { reply(ContainerAdjustment{.envs = {{"A", "b"}}}); });
  };
  Attach();
  const auto response = runtime_->CreateContainer(Pod("1"), Container("c"));
  other.join();
  ASSERT_TRUE(response.ok());
  EXPECT_THAT(response->adjust().env(), SizeIs(1));
}

TEST_F(NriPluginTest, RefusesCreationInTimeWhenNobodyDecides) {
  RuntimeEvents::AdjustmentReply kept;
  events_.on_create = [&](const RuntimeContainer&, RuntimeEvents::AdjustmentReply reply) {
    kept = std::move(reply);
  };
  options_.reply_timeout = milliseconds(50);
  Attach();
  const Status status = runtime_->CreateContainer(Pod("1"), Container("web")).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(MessageOf(status), HasSubstr("container web of pod default/pod-1"));
  kept(ContainerAdjustment{});  // too late: dropped
  EXPECT_TRUE(runtime_->Call("Shutdown", "").ok());
  EXPECT_EQ(runtime_->connections(), 1);
}

TEST_F(NriPluginTest, KeepsWithinTheRuntimesOwnLimit) {
  events_.on_create = [](const RuntimeContainer&, const RuntimeEvents::AdjustmentReply&) {};
  Attach({.request_timeout_ms = 300});
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(runtime_->CreateContainer(Pod("1"), Container("c")).status().code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_LT(std::chrono::steady_clock::now() - before, milliseconds(1000));
  EXPECT_EQ(runtime_->connections(), 1);
}

TEST_F(NriPluginTest, LetsUpdatePassWhenNobodyDecides) {
  events_.on_update = [](const LinuxResources&, const RuntimeEvents::UpdatesReply&) {};
  options_.reply_timeout = milliseconds(50);
  Attach();
  const StatusOr<std::string> response = runtime_->Call("UpdateContainer", "");
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(*response, "");
}

TEST_F(NriPluginTest, TakesPresentButZeroForUnset) {
  std::promise<LinuxResources> seen;
  events_.on_update = [&](const LinuxResources& requested,
                          const RuntimeEvents::UpdatesReply& reply) {
    seen.set_value(requested);
    reply(std::vector<ContainerUpdate>{
        {.container_id = "id-c",
         .resources = {.cpuset_cpus = "4-5", .hugepage_limit_bytes = {{"2MB", 1}}}}});
  };
  Attach();
  wire::UpdateContainerRequest request;
  *request.mutable_container() = Container("c");
  wire::LinuxResources& resources = *request.mutable_linux_resources();
  resources.mutable_memory()->mutable_limit();
  resources.mutable_cpu()->mutable_shares();
  resources.mutable_cpu()->mutable_quota();
  resources.mutable_cpu()->mutable_period()->set_value(100000);
  const StatusOr<std::string> answer =
      runtime_->Call("UpdateContainer", request.SerializeAsString());
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(seen.get_future().get(), (LinuxResources{.cpu_period_us = 100000}));
  wire::UpdateContainerResponse response;
  ASSERT_TRUE(response.ParseFromString(*answer));
  EXPECT_EQ(response.update(0).container_id(), "id-c");
  EXPECT_EQ(response.update(0).linux().resources().cpu().cpus(), "4-5");
  EXPECT_THAT(response.update(0).linux().resources().hugepage_limits(), IsEmpty());
}

TEST_F(NriPluginTest, HearsSameEventsByStateChangeAndByTheirOwnCalls) {
  Attach();
  const std::vector<std::string> before = events_.log();
  const auto news = [&] {
    std::vector<std::string> log = events_.log();
    log.erase(log.begin(), log.begin() + static_cast<std::ptrdiff_t>(before.size()));
    return log;
  };
  const std::vector<std::pair<std::string, wire::Event>> events = {
      {"RunPodSandbox", wire::RUN_POD_SANDBOX},
      {"PostStartContainer", wire::POST_START_CONTAINER},
      {"StopContainer", wire::STOP_CONTAINER},
      {"StopPodSandbox", wire::STOP_POD_SANDBOX},
      {"RemoveContainer", wire::REMOVE_CONTAINER},
      {"RemovePodSandbox", wire::REMOVE_POD_SANDBOX}};
  for (const auto& [method, event] : events) {
    ASSERT_TRUE(runtime_->StateChange(event, Pod("1"), Container("c")).ok());
    wire::ContainerEventRequest request;
    *request.mutable_pod() = Pod("1");
    *request.mutable_container() = Container("c");
    ASSERT_TRUE(runtime_->Call(method, request.SerializeAsString()).ok());
  }
  EXPECT_THAT(news(), ElementsAre("pod started 1", "pod started 1", "started c", "started c",
                                  "stopped c", "stopped c", "pod stopped 1", "pod stopped 1",
                                  "removed c", "removed c", "pod removed 1", "pod removed 1"));
}

TEST_F(NriPluginTest, AnswersWhatItDoesNotKnow) {
  Attach();
  EXPECT_EQ(runtime_->Call("InventedLater", "").status().code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(runtime_->StateChange(static_cast<wire::Event>(77), Pod("1")).ok());
  EXPECT_EQ(runtime_->Call("CreateContainer", "\xff\xff\xff").status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(plugin_->GetStatus().connected);
}

TEST_F(NriPluginTest, NamesContainerByLabelWhenTheRuntimeDoesNot) {
  Attach();
  wire::Container container = Container("");
  (*container.mutable_labels())["io.kubernetes.container.name"] = "labelled";
  ASSERT_TRUE(runtime_->CreateContainer(Pod("1"), container).ok());
  EXPECT_EQ(events_.log().back(), "create labelled");
}

TEST_F(NriPluginTest, KeepsTheLabelsThatThePodHasOfItsOwn) {
  ScriptedRuntimeOptions script;
  wire::PodSandbox pod = Pod("1");
  (*pod.mutable_labels())["app"] = "web";
  (*pod.mutable_labels())["io.cri-containerd.kind"] = "sandbox";
  (*pod.mutable_labels())["io.kubernetes.pod.uid"] = "1";
  (*pod.mutable_annotations())["kubernetes.io/config.source"] = "file";
  (*pod.mutable_annotations())["io.kubernetes.cri.sandbox-id"] = "x";
  script.pods.push_back(pod);
  Attach(script);
  EXPECT_EQ(events_.pods()[0].labels, (StringMap{{"app", "web"}}));
  EXPECT_EQ(events_.pods()[0].annotations, (StringMap{{"kubernetes.io/config.source", "file"}}));
}

TEST_F(NriPluginTest, AttachesAgainAfterItWasCutOff) {
  Attach();
  runtime_->Disconnect();
  ASSERT_TRUE(runtime_->WaitForSynchronizations(2));
  EXPECT_TRUE(Await([&] { return plugin_->GetStatus().connected; }));
  EXPECT_THAT(events_.log(), ElementsAre("connected v1.7.24", "synchronize", "disconnected",
                                         "connected v1.7.24", "synchronize"));
  EXPECT_EQ(plugin_->GetStatus().connects, 2U);
  EXPECT_EQ(plugin_->GetStatus().disconnects, 1U);
  EXPECT_EQ(plugin_->GetStatus().kicked, 0U);
}

TEST_F(NriPluginTest, CountsBeingCutOffWhileTheRuntimeWaits) {
  std::promise<void> asked;
  events_.on_create = [&](const RuntimeContainer&, const RuntimeEvents::AdjustmentReply&) {
    asked.set_value();
  };
  Attach();
  std::thread caller([&] { (void)runtime_->CreateContainer(Pod("1"), Container("c")); });
  asked.get_future().wait();
  runtime_->Disconnect();
  caller.join();
  ASSERT_TRUE(runtime_->WaitForSynchronizations(2));
  EXPECT_EQ(plugin_->GetStatus().kicked, 1U);
}

TEST_F(NriPluginTest, AttachesOnceTheRuntimeIsThere) {
  options_.backoff_first = milliseconds(5);
  options_.backoff_last = milliseconds(20);
  StartPlugin();
  EXPECT_TRUE(Await([&] { return !plugin_->GetStatus().problem.empty(); }));
  EXPECT_THAT(plugin_->GetStatus().problem, HasSubstr(dir_ / "nri.sock"));
  StartRuntime();
  EXPECT_TRUE(runtime_->WaitForSynchronizations(1));
}

TEST_F(NriPluginTest, AttachesAgainAfterRuntimeRestart) {
  options_.backoff_first = milliseconds(5);
  options_.backoff_last = milliseconds(20);
  Attach();
  runtime_.reset();
  StartRuntime({.version = "v1.7.25"});
  ASSERT_TRUE(runtime_->WaitForSynchronizations(1));
  EXPECT_TRUE(Await([&] { return plugin_->GetStatus().runtime.version == "v1.7.25"; }));
}

TEST_F(NriPluginTest, GivesUpOnRuntimeThatStaysSilent) {
  options_.handshake_timeout = milliseconds(30);
  options_.backoff_first = milliseconds(1);
  StartRuntime({.known_events = 0});  // refuses every plugin
  StartPlugin();
  EXPECT_TRUE(Await([&] { return runtime_->connections() >= 3; }));
  EXPECT_FALSE(plugin_->GetStatus().connected);
  EXPECT_EQ(plugin_->GetStatus().disconnects, 0U);
}

TEST_F(NriPluginTest, SurvivesGarbage) {
  Attach();
  runtime_->SendRaw(std::string(64, '\xff'));
  EXPECT_TRUE(runtime_->WaitForSynchronizations(2));
}

TEST_F(NriPluginTest, StopsWithAnswerDue) {
  RuntimeEvents::AdjustmentReply kept;
  std::promise<void> asked;
  events_.on_create = [&](const RuntimeContainer&, RuntimeEvents::AdjustmentReply reply) {
    kept = std::move(reply);
    asked.set_value();
  };
  Attach();
  std::thread caller([&] { (void)runtime_->CreateContainer(Pod("1"), Container("c")); });
  asked.get_future().wait();
  loop_->Run([this] { plugin_.reset(); });
  kept(ContainerAdjustment{});
  caller.join();
  EXPECT_NE(events_.log().back(), "disconnected");
}

TEST(NriOptionsTest, RefusesWhatNoRuntimeTakes) {
  boost::asio::io_context io;
  RecordedEvents events;
  for (const NriOptions& options :
       {NriOptions{.index = "9"}, NriOptions{.index = "9x"}, NriOptions{.name = ""},
        NriOptions{.name = "a/b"}, NriOptions{.socket = ""},
        NriOptions{.socket = "/" + std::string(200, 'x')}}) {
    EXPECT_EQ(NriPlugin(io, options, events).Start().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace qrm::manager
