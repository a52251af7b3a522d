// The runtime's events on a node without a disk, a runtime or real plugins.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "manager/admission/admitter.h"
#include "manager/admission/releaser.h"
#include "manager/demand/demand_source.h"
#include "manager/pods/ended_pods.h"
#include "manager/pods/inventory.h"
#include "manager/pods/node_parts.h"
#include "manager/pods/observer.h"
#include "manager/pods/pod_events.h"
#include "manager/pods/pod_placer.h"
#include "manager/pods/pre_start.h"
#include "manager/pods/sync_audit.h"
#include "manager/reconcile/reconciler.h"
#include "test/support/answering_plugins.h"
#include "test/support/cpuset_dir.h"
#include "test/support/fake_runtime.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"
#include "test/support/temp_decisions.h"

namespace qrm::test {

using manager::Admitter;
using manager::CgroupEstimate;
using manager::ContainerAdjustment;
using manager::ContainerUpdate;
using manager::LinuxResources;
using manager::LiveContainer;
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

// Counts the findings of an audit.
class CountingAuditListener final : public manager::AuditListener {
 public:
  manager::ListVerdict OnListed(const manager::RuntimeList& /*list*/) override {
    ++listed;
    return verdict;
  }
  void OnLeftOut() override { ++left_out; }
  void OnLeftOutAgain(const RuntimePod& /*pod*/, RuntimeContainer container) override {
    on_left_out_again(container);
  }

  std::function<void(const RuntimeContainer&)> on_left_out_again = [](const RuntimeContainer&) {};
  int listed = 0;
  int left_out = 0;
  manager::ListVerdict verdict = manager::ListVerdict::kCertain;
};

// A node whose cpu plugin gives CPUs 0-1, and all parts of manager/pods except its facade.
class PodEventsFixture : public testing::Test {
 protected:
  PodEventsFixture() : PodEventsFixture(estimate_) {}
  /// `source`, which outlives the fixture, reports requests of containers.
  explicit PodEventsFixture(manager::DemandSource& source) : source_(source) {
    Serve(true);
    reconciler_.Stop();  // it only counts who triggers it
  }
  /// With a reconciler that works while another thread runs `reconcile_io_`.
  explicit PodEventsFixture(const manager::DeferralOptions& deferral)
      : source_(estimate_), deferral_(deferral) {}
  /// Work that is still posted uses the parts below it.
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
  /// The state of the pod's container; empty if it does not exist.
  LiveContainer Live(const std::string& pod) const {
    return live_.Find(Key(pod)).value_or(LiveContainer());
  }
  /// How often the reconciler was triggered so far.
  std::size_t Reconciles() {
    reconcile_io_.restart();
    return reconciles_ += reconcile_io_.poll();
  }
  /// Runs all timers of manager/pods, except very long ones and some that are set again and again.
  void RunTimers() {
    constexpr int kMost = 50;
    io_.restart();
    for (int i = 0; i < kMost && io_.run_one_for(std::chrono::milliseconds(20)) > 0; ++i) {
    }
    Settle(state_);
  }

  Journal journal_;
  CpusetDir cgroups_;
  AnsweringPlugins plugins_;
  const Machine machine_ = SampleMachine();
  const SystemClock clock_;
  LiveContainers live_;
  manager::ForeignWrites writes_;
  CgroupEstimate estimate_;
  manager::DemandSource& source_;
  const manager::DeferralOptions deferral_{};
  FakeRuntime runtime_;
  std::atomic<bool> aside_{false};
  boost::asio::io_context io_;
  boost::asio::io_context reconcile_io_;
  std::size_t reconciles_ = 0;
  TempDecisions decisions_;
  StateLoop state_{OpenMemoryStore(journal_)};
  Releaser releaser_{state_, plugins_, {}};
  Admitter admitter_{{state_, decisions_.log, plugins_, releaser_, machine_, clock_, {}}, {}};
  manager::DriftCheck drift_{{.read = cgroups_.Source(), .live = live_, .writes = writes_}};
  manager::Reconciler reconciler_{{.io = reconcile_io_,
                                   .state = state_,
                                   .plugins = plugins_,
                                   .runtime = runtime_,
                                   .live = live_,
                                   .machine = machine_,
                                   .drift = drift_,
                                   .writes_cpusets = true},
                                  {.period = std::chrono::hours(1), .deferral = deferral_}};
  const manager::NodeParts parts_{.io = io_,
                                  .state = state_,
                                  .plugins = plugins_,
                                  .source = source_,
                                  .admitter = admitter_,
                                  .releaser = releaser_,
                                  .reconciler = reconciler_,
                                  .runtime = runtime_,
                                  .live = live_,
                                  .writes = writes_,
                                  .machine = machine_,
                                  .read_cpuset = cgroups_.Source(),
                                  .stands_aside = [this] { return aside_.load(); }};
  manager::PodPlacer placer_{parts_, std::chrono::seconds(10)};
  manager::EndedPods ended_{{.io = io_, .live = live_, .placer = placer_},
                            std::chrono::milliseconds(1)};
  manager::Inventory inventory_{parts_, placer_, ended_};
  manager::Observer observer_{{.io = io_,
                               .runtime = runtime_,
                               .state = state_,
                               .live = live_,
                               .read_cpuset = {},
                               .listener = inventory_},
                              {.grace = std::chrono::milliseconds(0)}};
  CountingAuditListener audited_;
  manager::SyncAudit audit_{
      {.io = io_, .runtime = runtime_, .state = state_, .live = live_, .listener = audited_},
      {.delays = {std::chrono::milliseconds(1)},
       .period = std::chrono::hours(1),
       .soon = std::chrono::milliseconds(1)}};
  manager::PreStart pre_start_{
      {.state = state_,
       .plugins = plugins_,
       .hand_over = [this](const ContainerKey& key,
                           manager::PreStart::Done done) { placer_.Start(key, std::move(done)); }},
      std::chrono::seconds(10)};
  PodEvents events_{parts_, {placer_, inventory_, observer_, audit_, ended_, pre_start_}};
};

}  // namespace qrm::test
