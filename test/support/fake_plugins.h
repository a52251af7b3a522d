// Plugins with a test's answers, without processes or sockets.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/base/errorf.h"
#include "api/base/mutex.h"
#include "manager/registry/plugins.h"
#include "test/support/answer_if.h"

namespace qrm::test {

/// Answers from its fields; set them before the servers under test start, or use the setters.
class FakePlugins final : public manager::Plugins {
 public:
  using Allocatable = manager::ByPlugin<AllocatableByResource>;
  using Pools = std::vector<sdk::Pool>;

  std::vector<manager::PluginInfo> infos;
  std::map<std::string, StatusOr<Pools>> pools;

  /// The plugins' answers to GetAllocatable, by name; others offer nothing.
  void SetAllocatable(Allocatable allocatable) {
    const MutexLock lock(mutex_);
    allocatable_ = std::move(allocatable);
  }
  /// From now on GetAllocatable keeps its caller waiting, as plugins that hang do.
  void Hang() {
    const MutexLock lock(mutex_);
    hangs_ = true;
  }
  /// How many plugins were asked GetAllocatable so far.
  int allocatable_calls() const {
    const MutexLock lock(mutex_);
    return allocatable_calls_;
  }

  /// From now on the plugin of `resource` answers GetPlacement with `placed`.
  void SetPlacement(const std::string& resource, StatusOr<PlacedByResource> placed) {
    const MutexLock lock(mutex_);
    placements_.insert_or_assign(resource, std::move(placed));
  }
  /// From now on it does not answer GetPlacement.
  void HangPlacement(const std::string& resource) {
    const MutexLock lock(mutex_);
    hanging_placements_.insert(resource);
  }
  /// From now on GetPools and SetPools are not answered, until ReleasePools.
  void HangPools() {
    const MutexLock lock(mutex_);
    pools_hang_ = true;
  }
  /// Answers the waiting calls with `answer`.
  void ReleasePools(const StatusOr<Pools>& answer) {
    for (const std::shared_ptr<calls::Call>& call : TakeWaitingPools()) {
      const auto answer_it = [&answer](const auto&) { return answer; };
      AnswerIf<calls::GetPools>(call, answer_it) || AnswerIf<calls::SetPools>(call, answer_it);
    }
  }
  std::size_t waiting_pools() const {
    const MutexLock lock(mutex_);
    return waiting_pools_.size();
  }
  /// "container resource" of each GetPlacement so far.
  std::vector<std::string> placement_calls() const {
    const MutexLock lock(mutex_);
    return placement_calls_;
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
  void Forget(const std::string&) override {}

 private:
  using CallPtr = std::shared_ptr<calls::Call>;

  void Start(const std::string& resource, CallPtr call, Deadline) override {
    if (Hangs(resource, call)) {
      return;
    }
    const bool answered =
        AnswerIf<calls::GetAllocatable>(call, [&](const auto&) { return Offered(resource); }) ||
        AnswerIf<calls::GetPlacement>(call, [&](const auto&) { return Placement(resource); }) ||
        AnswerIf<calls::GetPools>(call, [&](const auto&) { return PoolsOf(resource); }) ||
        AnswerIf<calls::SetPools>(
            call, [&](const auto& request) { return Change(resource, request.cpus_by_pool); });
    if (!answered) {
      call->Fail(Errorf(StatusCode::kUnimplemented, "not in the script"), calls::Blame::kRefusal);
    }
  }

  /// Notes the call, and keeps it when its plugin hangs.
  bool Hangs(const std::string& resource, const CallPtr& call) {
    const MutexLock lock(mutex_);
    if (As<calls::GetAllocatable>(call) != nullptr) {
      ++allocatable_calls_;
      return Keep(call, hangs_, waiting_);
    }
    if (const auto placement = As<calls::GetPlacement>(call); placement != nullptr) {
      placement_calls_.push_back(placement->request().container + " " + resource);
      return Keep(call, hanging_placements_.contains(resource), waiting_);
    }
    return Keep(call, pools_hang_, waiting_pools_);
  }
  static bool Keep(const CallPtr& call, bool hangs, std::vector<CallPtr>& waiting) {
    if (hangs) {
      waiting.push_back(call);
    }
    return hangs;
  }
  std::vector<CallPtr> TakeWaitingPools() {
    const MutexLock lock(mutex_);
    pools_hang_ = false;
    return std::exchange(waiting_pools_, {});
  }

  StatusOr<AllocatableByResource> Offered(const std::string& resource) {
    const MutexLock lock(mutex_);
    const auto found = allocatable_.find(resource);
    return found == allocatable_.end() ? AllocatableByResource() : found->second;
  }
  StatusOr<ContainerPlacement> Placement(const std::string& resource) {
    const MutexLock lock(mutex_);
    const auto found = placements_.find(resource);
    if (found == placements_.end()) {
      return Errorf(StatusCode::kUnimplemented, "plugin {} reports no placements", resource);
    }
    QRM_ASSIGN_OR_RETURN(PlacedByResource placed, found->second);
    return ContainerPlacement{.resources = std::move(placed)};
  }
  StatusOr<Pools> PoolsOf(const std::string& resource) const {
    const auto found = pools.find(resource);
    if (found == pools.end()) {
      return Errorf(StatusCode::kUnavailable,
                    "cannot ask plugin {}: it is not registered; start it", resource);
    }
    return found->second;
  }
  StatusOr<Pools> Change(const std::string& resource, const StringMap& cpus_by_pool) {
    QRM_ASSIGN_OR_RETURN(Pools current, PoolsOf(resource));
    for (sdk::Pool& pool : current) {
      if (const auto found = cpus_by_pool.find(pool.name); found != cpus_by_pool.end()) {
        QRM_ASSIGN_OR_RETURN(pool.cpus, CpuSet::Parse(found->second));
      }
    }
    pools.insert_or_assign(resource, current);
    return current;
  }

  mutable Mutex mutex_;
  Allocatable allocatable_ QRM_GUARDED_BY(mutex_);
  bool hangs_ QRM_GUARDED_BY(mutex_) = false;
  int allocatable_calls_ QRM_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> placement_calls_ QRM_GUARDED_BY(mutex_);
  std::map<std::string, StatusOr<PlacedByResource>> placements_ QRM_GUARDED_BY(mutex_);
  std::set<std::string> hanging_placements_ QRM_GUARDED_BY(mutex_);
  bool pools_hang_ QRM_GUARDED_BY(mutex_) = false;
  std::vector<CallPtr> waiting_pools_ QRM_GUARDED_BY(mutex_);
  std::vector<CallPtr> waiting_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::test
