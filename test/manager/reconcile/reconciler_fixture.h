// A reconciler on the simulated runtime, with one container.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "api/base/errorf.h"
#include "manager/reconcile/drift.h"
#include "manager/reconcile/reconciler.h"
#include "manager/runtime/live_containers.h"
#include "test/support/answering_plugins.h"
#include "test/support/await.h"
#include "test/support/fake_runtime.h"
#include "test/support/loop_thread.h"
#include "test/support/memory_store.h"
#include "test/support/sample_node.h"

namespace qrm::manager {

inline const ContainerKey kKey{"uid-web", "main"};

// One container that runs in the pool 0-3, and a reconciler that runs when it is triggered.
class ReconcilerTest : public testing::Test {
 protected:
  ReconcilerTest() {
    CpuHolds("0-3");
    live_.Reset({{"uid-web", {"sandbox"}}}, {{kKey, {"id", "sandbox", true, "/kubepods/pod/id"}}});
    test::RunOn(state_, [this] {
      checkpoint::Change change;
      change.put_containers.push_back({test::SamplePod("web"),
                                       "main",
                                       {.allocations = {{"cpu", Pool("0-3")}},
                                        .applied = {{"CpusetCpus", "0-3"}},
                                        .applied_to = "id"}});
      ASSERT_TRUE(state_.Commit(change).ok());
    });
  }
  void TearDown() override {
    loop_.Run([this] { reconciler_.Stop(); });
    state_.Stop();
    loop_.Stop();
  }

  static ResourceAllocation Pool(const std::string& cpus) {
    return {.oci_property = "CpusetCpus", .value = cpus};
  }
  void CpuHolds(const std::string& cpus, AllocationByContainer more = {}) {
    test::PluginScript script;
    script.holds = std::move(more);
    script.holds->emplace(kKey, AllocationByResource{{"cpu", Pool(cpus)}});
    plugins_.Set("cpu", std::move(script));
  }
  // One whole run, from trigger to end.
  void RunOnce() {
    const uint64_t before = reconciler_.GetStatus().runs;
    reconciler_.Trigger();
    ASSERT_TRUE(test::Await([&] { return reconciler_.GetStatus().runs > before; }));
    loop_.Run([] {});
  }
  Reconciler::Parts Parts() {
    return {.io = loop_.io(),
            .state = state_,
            .plugins = plugins_,
            .runtime = runtime_,
            .live = live_,
            .machine = machine_,
            .drift = drift_,
            .read_memory = [this](const std::string&) { return ReadMemory(); },
            .stands_aside = [this] { return aside_.load(); }};
  }
  // The kernel's CPUs of the container.
  void KernelHas(const std::string& cpus) {
    const MutexLock lock(mutex_);
    kernel_ = CgroupCpuset{.cpus = *CpuSet::Parse(cpus), .mems = {0}};
  }
  StatusOr<CgroupCpuset> ReadKernel() {
    const MutexLock lock(mutex_);
    return kernel_;
  }
  // The memory nodes of the container's memory.
  void MemoryIsOn(int node) {
    const MutexLock lock(mutex_);
    memory_ = {{node, 16 << 20}};
  }
  std::map<int, uint64_t> ReadMemory() {
    const MutexLock lock(mutex_);
    return memory_;
  }
  checkpoint::ContainerRecord Record() { return *state_.Load()->Find(kKey); }

  test::Journal journal_;
  test::AnsweringPlugins plugins_;
  test::FakeRuntime runtime_;
  const Machine machine_ = test::SampleMachine();
  LiveContainers live_;
  StateLoop state_{test::OpenMemoryStore(journal_)};
  test::LoopThread loop_;
  std::atomic<bool> aside_ = false;
  Mutex mutex_;
  StatusOr<CgroupCpuset> kernel_ QRM_GUARDED_BY(mutex_) = Errorf(StatusCode::kNotFound,
                                                                 "no such cgroup");
  std::map<int, uint64_t> memory_ QRM_GUARDED_BY(mutex_);
  ForeignWrites writes_;
  DriftCheck drift_{{.read = [this](const std::string&) { return ReadKernel(); },
                     .live = live_,
                     .writes = writes_}};
  Reconciler reconciler_{Parts(), {.period = std::chrono::hours(1)}};
};

}  // namespace qrm::manager
