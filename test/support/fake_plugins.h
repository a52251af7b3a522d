// Plugins that answer what a test has put in, without processes or sockets.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/base/mutex.h"
#include "manager/registry/plugins.h"

namespace qrm::test {

/// Answers from its fields; set them before the servers under test start, or use the setters.
class FakePlugins final : public manager::Plugins {
 public:
  using Allocatable = std::map<std::string, StatusOr<std::map<std::string, AllocatableResource>>>;
  using Pools = std::vector<manager::PoolInfo>;

  std::vector<manager::PluginInfo> infos;
  std::map<std::string, StatusOr<Pools>> pools;

  void SetAllocatable(Allocatable allocatable) {
    const MutexLock lock(mutex_);
    allocatable_ = std::move(allocatable);
  }
  /// From now on GetAllocatable keeps its caller waiting, as plugins that hang do.
  void Hang() {
    const MutexLock lock(mutex_);
    hangs_ = true;
  }
  int allocatable_rounds() const {
    const MutexLock lock(mutex_);
    return allocatable_rounds_;
  }

  std::vector<manager::PluginInfo> List() const override { return infos; }

  std::optional<manager::PluginInfo> Find(const std::string& resource) const override {
    for (const manager::PluginInfo& info : infos) {
      if (info.resource == resource) {
        return info;
      }
    }
    return std::nullopt;
  }

  void MarkSuspect(const std::string&, const std::string&) override {}

  std::vector<StatusOr<HintList>> GetTopologyHints(const std::vector<ContainerRequest>& requests,
                                                   Deadline) override {
    return std::vector<StatusOr<HintList>>(requests.size(), HintList::NoPreference());
  }
  std::vector<StatusOr<AllocationByResource>> Allocate(
      const std::vector<ContainerRequest>& requests, Deadline) override {
    return std::vector<StatusOr<AllocationByResource>>(requests.size(), AllocationByResource{});
  }
  std::map<std::string, Status> RemovePod(const std::string&, const std::vector<std::string>&,
                                          Deadline) override {
    return {};
  }
  std::map<std::string, Status> ReleaseContainer(const ContainerKey&,
                                                 const std::vector<std::string>&,
                                                 Deadline) override {
    return {};
  }
  void GetResourcesAllocation(const std::set<std::string>&, Deadline,
                              std::function<void(manager::AllocationsByPlugin)> done) override {
    done({});
  }

  void GetAllocatable(Deadline, std::function<void(Allocatable)> done) override {
    Allocatable answer;
    {
      const MutexLock lock(mutex_);
      ++allocatable_rounds_;
      if (hangs_) {
        waiting_.push_back(std::move(done));
        return;
      }
      answer = allocatable_;
    }
    done(std::move(answer));
  }

  using Placed = StatusOr<manager::PlacedByResource>;

  /// From now on the plugin of `resource` answers GetPlacement with `placed`.
  void SetPlacement(const std::string& resource, Placed placed) {
    const MutexLock lock(mutex_);
    placements_.insert_or_assign(resource, std::move(placed));
  }
  /// From now on it does not answer GetPlacement.
  void HangPlacement(const std::string& resource) {
    const MutexLock lock(mutex_);
    hanging_placements_.insert(resource);
  }

  void GetPlacement(const ContainerKey& key, const std::string& resource, Deadline,
                    std::function<void(Placed)> done) override {
    Placed answer = Errorf(StatusCode::kUnimplemented, "plugin {} does not tell", resource);
    {
      const MutexLock lock(mutex_);
      placement_calls_.push_back(key.container + " " + resource);
      if (hanging_placements_.contains(resource)) {
        waiting_placements_.push_back(std::move(done));
        return;
      }
      if (const auto found = placements_.find(resource); found != placements_.end()) {
        answer = found->second;
      }
    }
    done(std::move(answer));
  }
  /// "container resource" of each GetPlacement so far.
  std::vector<std::string> placement_calls() const {
    const MutexLock lock(mutex_);
    return placement_calls_;
  }

  /// From now on nobody gets an answer to GetPools and SetPools, until ReleasePools.
  void HangPools() {
    const MutexLock lock(mutex_);
    pools_hang_ = true;
  }
  /// Answers those who wait, with `answer`.
  void ReleasePools(const StatusOr<Pools>& answer) {
    for (const manager::PoolsCallback& done : TakeWaitingPools()) {
      done(answer);
    }
  }
  std::size_t waiting_pools() const {
    const MutexLock lock(mutex_);
    return waiting_pools_.size();
  }

  void GetPools(const std::string& resource, Deadline, manager::PoolsCallback done) override {
    if (!Hangs(done)) {
      done(PoolsOf(resource));
    }
  }
  void SetPools(const std::string& resource, const std::map<std::string, std::string>& cpus_by_pool,
                Deadline, manager::PoolsCallback done) override {
    if (Hangs(done)) {
      return;
    }
    auto current = PoolsOf(resource);
    if (current.ok()) {
      for (manager::PoolInfo& pool : *current) {
        if (const auto found = cpus_by_pool.find(pool.name); found != cpus_by_pool.end()) {
          pool.cpus = found->second;
        }
      }
      pools.insert_or_assign(resource, current);
    }
    done(current);
  }

 private:
  StatusOr<Pools> PoolsOf(const std::string& resource) const {
    const auto found = pools.find(resource);
    if (found == pools.end()) {
      return Errorf(StatusCode::kUnavailable,
                    "cannot ask plugin {}: it is not registered; start it", resource);
    }
    return found->second;
  }
  bool Hangs(const manager::PoolsCallback& done) {
    const MutexLock lock(mutex_);
    if (pools_hang_) {
      waiting_pools_.push_back(done);
    }
    return pools_hang_;
  }
  std::vector<manager::PoolsCallback> TakeWaitingPools() {
    const MutexLock lock(mutex_);
    return std::exchange(waiting_pools_, {});
  }

  mutable Mutex mutex_;
  bool pools_hang_ QRM_GUARDED_BY(mutex_) = false;
  std::vector<manager::PoolsCallback> waiting_pools_ QRM_GUARDED_BY(mutex_);
  Allocatable allocatable_ QRM_GUARDED_BY(mutex_);
  bool hangs_ QRM_GUARDED_BY(mutex_) = false;
  int allocatable_rounds_ QRM_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> placement_calls_ QRM_GUARDED_BY(mutex_);
  std::map<std::string, Placed> placements_ QRM_GUARDED_BY(mutex_);
  std::set<std::string> hanging_placements_ QRM_GUARDED_BY(mutex_);
  std::vector<std::function<void(Placed)>> waiting_placements_ QRM_GUARDED_BY(mutex_);
  std::vector<std::function<void(Allocatable)>> waiting_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::test
