// The NRI plugin between a handler that notes what happens and a scripted runtime on a real socket.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/base/mutex.h"
#include "manager/runtime/nri/nri_plugin.h"
#include "test/support/loop_thread.h"
#include "test/support/scripted_runtime.h"
#include "test/support/temp_dir.h"

namespace qrm::test {

/// Records the events; answers as a test says, at once by default.
class RecordedEvents final : public manager::RuntimeEvents {
 public:
  std::function<void(const manager::RuntimeContainer&, AdjustmentReply)> on_create =
      [](const manager::RuntimeContainer&, const AdjustmentReply& reply) {
        reply(manager::ContainerAdjustment{});
      };
  std::function<void(const manager::LinuxResources&, UpdatesReply)> on_update =
      [](const manager::LinuxResources&, const UpdatesReply& reply) {
        reply(std::vector<manager::ContainerUpdate>{});
      };
  std::function<void(const manager::RuntimeContainer&, const StartReply&)> on_start =
      [](const manager::RuntimeContainer&, const StartReply& reply) { reply(OkStatus()); };
  std::vector<manager::ContainerUpdate> sync_updates;
  bool replies_to_synchronize = true;

  std::vector<std::string> log() const {
    const MutexLock lock(mutex_);
    return log_;
  }
  std::vector<manager::RuntimePod> pods() const {
    const MutexLock lock(mutex_);
    return pods_;
  }
  std::vector<manager::RuntimeContainer> containers() const {
    const MutexLock lock(mutex_);
    return containers_;
  }

  void OnConnected(const manager::RuntimeInfo& runtime) override {
    Note("connected " + runtime.version);
  }
  void OnDisconnected(const Status&) override { Note("disconnected"); }
  void OnSynchronize(std::vector<manager::RuntimePod> pods,
                     std::vector<manager::RuntimeContainer> containers,
                     UpdatesReply reply) override {
    {
      const MutexLock lock(mutex_);
      pods_ = std::move(pods);
      containers_ = std::move(containers);
    }
    Note("synchronize");
    if (replies_to_synchronize) {
      reply(sync_updates);
    }
  }
  void OnPodStarted(const manager::RuntimePod& pod) override { Note("pod started " + pod.uid); }
  void OnPodStopped(const manager::RuntimePod& pod) override { Note("pod stopped " + pod.uid); }
  void OnPodRemoved(const manager::RuntimePod& pod) override { Note("pod removed " + pod.uid); }
  void OnCreateContainer(manager::RuntimePod, manager::RuntimeContainer container,
                         AdjustmentReply reply) override {
    Note("create " + container.name);
    on_create(container, std::move(reply));
  }
  void OnUpdateContainer(manager::RuntimePod, manager::RuntimeContainer container,
                         manager::LinuxResources requested, UpdatesReply reply) override {
    Note("update " + container.name);
    on_update(requested, std::move(reply));
  }
  void OnStartContainer(const manager::RuntimePod&, const manager::RuntimeContainer& container,
                        StartReply reply) override {
    Note("start " + container.name);
    on_start(container, reply);
  }
  void OnContainerStarted(const manager::RuntimePod&,
                          const manager::RuntimeContainer& container) override {
    Note("started " + container.name);
  }
  void OnContainerStopped(const manager::RuntimePod&,
                          const manager::RuntimeContainer& container) override {
    Note("stopped " + container.name);
  }
  void OnContainerRemoved(const manager::RuntimePod&,
                          const manager::RuntimeContainer& container) override {
    Note("removed " + container.name);
  }

 private:
  void Note(std::string line) {
    const MutexLock lock(mutex_);
    log_.push_back(std::move(line));
  }

  mutable Mutex mutex_;
  std::vector<std::string> log_;
  std::vector<manager::RuntimePod> pods_;
  std::vector<manager::RuntimeContainer> containers_;
};

inline nri::PodSandbox NriPod(const std::string& uid) {
  nri::PodSandbox pod;
  pod.set_id("sandbox-" + uid);
  pod.set_uid(uid);
  pod.set_name("pod-" + uid);
  pod.set_namespace_("default");
  return pod;
}

inline nri::Container NriContainer(const std::string& name) {
  nri::Container container;
  container.set_id("id-" + name);
  container.set_name(name);
  return container;
}

/// The base of the fixtures.
class NriFixture : public testing::Test {
 protected:
  using AdjustmentReply = manager::RuntimeEvents::AdjustmentReply;
  using UpdatesReply = manager::RuntimeEvents::UpdatesReply;
  using StartReply = manager::RuntimeEvents::StartReply;

  void TearDown() override {
    if (runtime_ != nullptr) {
      EXPECT_EQ(runtime_->violation(), "") << "what Go's reader cannot take";
      EXPECT_TRUE(runtime_->unsolicited().empty()) << "containerd deadlocks with plugins that call";
    }
    StopPlugin();
  }

  void StartRuntime(ScriptedRuntimeOptions options = {}) {
    runtime_ = std::make_unique<ScriptedRuntime>(dir_ / "nri.sock", std::move(options));
  }
  void StartPlugin() {
    options_.socket = dir_ / "nri.sock";
    loop_ = std::make_unique<LoopThread>();
    loop_->Run([this] {
      plugin_ = std::make_unique<manager::NriPlugin>(loop_->io(), options_, events_);
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
  /// Every creation is answered with `adjustment`.
  void Give(manager::ContainerAdjustment adjustment) {
    events_.on_create = [adjustment = std::move(adjustment)](const manager::RuntimeContainer&,
                                                             const AdjustmentReply& reply) {
      reply(adjustment);
    };
  }
  StatusOr<nri::CreateContainerResponse> Create(const std::string& name = "c") {
    return runtime_->CreateContainer(NriPod("1"), NriContainer(name));
  }

  TempDir dir_;
  manager::NriOptions options_;
  RecordedEvents events_;
  std::unique_ptr<ScriptedRuntime> runtime_;
  std::unique_ptr<LoopThread> loop_;
  std::unique_ptr<manager::NriPlugin> plugin_;
};

}  // namespace qrm::test
