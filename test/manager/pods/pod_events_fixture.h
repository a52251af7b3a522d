// The runtime's events on a node without disk, runtime or real plugins.
#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "manager/pods/pod_events.h"
#include "test/support/answering_plugins.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"

namespace qrm::test {

using manager::Admitter;
using manager::CgroupEstimate;
using manager::ContainerAdjustment;
using manager::ContainerUpdate;
using manager::LinuxResources;
using manager::LiveContainers;
using manager::PodEvents;
using manager::Releaser;
using manager::RuntimeContainer;
using manager::RuntimeContainerState;
using manager::RuntimePod;
using manager::StateLoop;

inline RuntimePod Pod(const std::string& name, const std::string& id = "") {
  return {.id = id.empty() ? "sandbox-" + name : id,
          .uid = "uid-" + name,
          .pod_namespace = "default",
          .name = name};
}

inline RuntimeContainer Container(const std::string& pod, const std::string& id,
                                  RuntimeContainerState state = RuntimeContainerState::kRunning) {
  RuntimeContainer container;
  container.id = id;
  container.pod_id = "sandbox-" + pod;
  container.name = "main";
  container.state = state;
  container.resources.cpu_shares = 2048;
  return container;
}

inline ContainerKey Key(const std::string& pod) {
  return {"uid-" + pod, "main"};
}

// A node whose cpu plugin gives CPUs 0-1.
class PodEventsFixture : public testing::Test {
 protected:
  PodEventsFixture() { Serve(true); }
  /// What is still posted uses the parts below it.
  void TearDown() override { Settle(state_); }

  void Serve(bool live, bool exclusive = false) {
    PluginScript cpu;
    cpu.live = live;
    ResourceAllocation allocation = exclusive ? OwnCpus("0-1") : SharedCpus("0-1", 2);
    cpu.gives = AllocationByResource{{"cpu", allocation}};
    plugins_.Set("cpu", cpu);
  }
  StatusOr<ContainerAdjustment> Create(const RuntimePod& pod, const RuntimeContainer& container) {
    StatusOr<ContainerAdjustment> got = Errorf(StatusCode::kInternal, "no reply");
    events_.OnCreateContainer(pod, container,
                              [&](StatusOr<ContainerAdjustment> reply) { got = std::move(reply); });
    Settle(state_);
    return got;
  }
  void Synchronize(std::vector<RuntimePod> pods, std::vector<RuntimeContainer> containers) {
    bool replied = false;
    events_.OnSynchronize(std::move(pods), std::move(containers),
                          [&](const auto& updates) { replied = updates.ok() && updates->empty(); });
    EXPECT_TRUE(replied) << "the runtime waits while it synchronizes";
    Settle(state_);
  }
  std::vector<ContainerUpdate> Update(const RuntimePod& pod, const RuntimeContainer& container,
                                      const LinuxResources& requested) {
    std::vector<ContainerUpdate> updates;
    events_.OnUpdateContainer(pod, container, requested, [&](const auto& r) { updates = *r; });
    return updates;
  }
  bool Known(const std::string& pod) { return state_.Load()->Find(Key(pod)) != nullptr; }

  Journal journal_;
  AnsweringPlugins plugins_;
  const Machine machine_ = SampleMachine();
  const SystemClock clock_;
  LiveContainers live_;
  manager::ForeignWrites writes_;
  CgroupEstimate source_;
  std::atomic<int> reconciles_{0};
  int disconnects_ = 0;
  std::atomic<bool> aside_{false};
  StateLoop state_{OpenMemoryStore(journal_)};
  Releaser releaser_{state_, plugins_, {}};
  Admitter admitter_{{state_, plugins_, releaser_, machine_, clock_, {}}, {}};
  PodEvents events_{
      {state_, source_, admitter_, releaser_, live_, writes_, [this] { ++reconciles_; }, [] {},
       [this] { ++disconnects_; }, [this] { return aside_.load(); }},
      std::chrono::seconds(10)};
};

}  // namespace qrm::test
