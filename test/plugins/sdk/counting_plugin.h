// A plugin for tests: gives each container the lowest free CPUs, four of which make a node, and can
// be set to misbehave.
#pragma once

#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "api/base/errorf.h"
#include "plugins/sdk/plugin.h"

namespace qrm::test {

class CountingPlugin final : public sdk::ResourcePlugin {
 public:
  explicit CountingPlugin(int cpus = 8) : all_(CpuSet::Range(0, cpus - 1)) {}

  Status Restore(const sdk::Grants& grants) override {
    held.clear();
    for (const auto& [key, grant] : grants) {
      held[key] = CpuSet::Parse(grant.allocation->value).value_or(CpuSet());
    }
    restored = grants;
    return OkStatus();
  }

  Status PreStart(const ContainerKey& container) override {
    prepared.push_back(container);
    return prepares;
  }

  bool AnswersAreQuick() const override { return answers_are_quick; }

  StatusOr<HintList> Hints(const ContainerRequest& request) override {
    ++hint_calls;
    return hints(request);
  }

  StatusOr<ResourceAllocation> Allocate(const ContainerRequest& request,
                                        const TopologyHint& hint) override {
    ++allocate_calls;
    last_hint = hint;
    if (failure) {
      failure();
    }
    CpuSet free = all_;
    for (const auto& [key, cpus] : held) {
      if (key != request.key) {
        free -= cpus;
      }
    }
    CpuSet cpus;
    for (int left = static_cast<int>(request.quantity()); left > 0 && !free.Empty(); --left) {
      cpus.Add(free.First());
      free.Remove(free.First());
    }
    if (cpus.Count() < static_cast<int>(request.quantity())) {
      return Errorf(StatusCode::kResourceExhausted, "cannot place {}: no CPU is free; remove a pod",
                    request.key.container);
    }
    held[request.key] = cpus;
    ResourceAllocation allocation = sdk::PinCpus(cpus);
    for (const int cpu : cpus) {
      ++allocation.amount_by_node[static_cast<uint64_t>(cpu / 4)];
    }
    return allocation;
  }

  void Retire() override { ++retired; }
  void Remove(const std::vector<ContainerKey>& keys) override {
    removed.insert(removed.end(), keys.begin(), keys.end());
    for (const ContainerKey& key : keys) {
      held.erase(key);
    }
  }

  StatusOr<std::map<ContainerKey, ResourceAllocation>> Reconcile(const sdk::Grants&) override {
    return reconciled;
  }

  AllocatableResource Allocatable() const override {
    return {.is_scalar_resource = true,
            .allocatable = 7,
            .capacity = 8,
            .allocatable_by_node = {{0, 3}, {1, 4}},
            .capacity_by_node = {{0, 4}, {1, 4}}};
  }

  std::vector<sdk::Pool> Pools() const override {
    return {{.name = "online",
             .cpus = online,
             .roles = {"search"},
             .containers = held.size(),
             .borrowed = {3}}};
  }

  Status SetPools(const std::map<std::string, CpuSet>& cpus_by_pool) override {
    const auto found = cpus_by_pool.find("online");
    if (found == cpus_by_pool.end()) {
      return Errorf(StatusCode::kInvalidArgument, "cannot set pools: only online is known");
    }
    online = found->second;
    for (auto& [key, allocation] : reconciled) {
      allocation = sdk::PinCpus(online);
    }
    return OkStatus();
  }

  std::string SaveState() const override { return ToString(online); }
  Status LoadState(const std::string& state) override {
    StatusOr<CpuSet> cpus = CpuSet::Parse(state);
    if (cpus.ok()) {
      online = *cpus;
    }
    return cpus.status();
  }

  std::string ExportState(const sdk::Grants& grants) const override {
    return "{\"grants\":" + std::to_string(grants.size()) + "}";
  }

  std::map<ContainerKey, CpuSet> held;
  sdk::Grants restored;
  std::vector<ContainerKey> removed;
  std::map<ContainerKey, ResourceAllocation> reconciled;
  CpuSet online;
  TopologyHint last_hint;
  bool answers_are_quick = false;
  int hint_calls = 0;
  int allocate_calls = 0;
  int retired = 0;
  /// Runs in Allocate; may throw.
  std::vector<ContainerKey> prepared;
  Status prepares;
  std::function<void()> failure;
  std::function<StatusOr<HintList>(const ContainerRequest&)> hints =
      [](const ContainerRequest&) -> StatusOr<HintList> {
    return std::vector<TopologyHint>{{.nodes = {0}, .preferred = true},
                                     {.nodes = {1}, .preferred = true}};
  };

 private:
  CpuSet all_;
};

/// A request for `cpus` CPUs of `container` in pod `uid`.
inline ContainerRequest CpuRequest(const std::string& uid, const std::string& container,
                                   double cpus) {
  return {.key = {uid, container},
          .pod_namespace = "default",
          .pod_name = "pod-" + uid,
          .resource = "cpu",
          .requests = {{"cpu", cpus}}};
}

}  // namespace qrm::test
