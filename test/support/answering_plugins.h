// Plugins that answer, fail and disconnect as a test says, and that remember the order of their
// calls.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/base/errorf.h"
#include "api/base/mutex.h"
#include "manager/registry/plugins.h"
#include "plugins/sdk/calls/compute_calls.h"
#include "test/support/answer_if.h"

namespace qrm::test {

/// The behaviour of one plugin; by default it gives `gives`, on any node, and releases it.
struct PluginScript {
  PluginOptions options{.with_topology_alignment = true, .need_reconcile = true};
  manager::RegisteredBy registered_by = manager::RegisteredBy::kBuiltIn;
  bool live = true;
  std::string problem;
  StatusOr<HintList> hints = HintList::NoPreference();
  StatusOr<AllocationByResource> gives = AllocationByResource{};
  Status removes;
  Status releases;
  Status restores;
  Status prepares;
  StatusOr<std::vector<sdk::Pool>> pools =
      std::vector<sdk::Pool>{{.name = "default", .cpus = CpuSet::Range(1, 7)}};
  AllocatableResource offers{.allocatable_cpus = CpuSet::Range(1, 7)};
  StatusOr<sdk::ComputeGrant> computes = sdk::ComputeGrant{};  ///< of a compute driver
  Status ends;                                                 ///< of a notification of an end
  StatusOr<AllocationByContainer> holds = AllocationByContainer{};
  /// The changes that it reports; by default it cannot report any.
  StatusOr<sdk::ChangedAllocations> changes = Status(StatusCode::kUnimplemented, "no such service");
};

/// Threads: any. Every call is answered at once, on the caller's thread.
class AnsweringPlugins final : public manager::Plugins {
 public:
  /// Runs with the journal entry of each call, before it is answered.
  std::function<void(const std::string& call)> on_call = [](const std::string&) {};

  void Set(const std::string& resource, PluginScript script) {
    const MutexLock lock(mutex_);
    scripts_[resource] = std::move(script);
  }
  /// As if it had never registered.
  void Drop(const std::string& resource) {
    const MutexLock lock(mutex_);
    scripts_.erase(resource);
  }
  /// "admit cci.qrm.io/x uid/name", "add cci.qrm.io/x uid/name=CPUS", "end cci.qrm.io/x uid/name",
  /// "hints cpu", "allocate cpu", "remove cpu uid", "release cpu uid/name", "prepare cpu uid/name",
  /// "holdings cpu", "changes cpu since WHEN", "restore cpu uid/name=value" for each grant.
  std::vector<std::string> calls() const {
    const MutexLock lock(mutex_);
    return calls_;
  }
  void ForgetCalls() {
    const MutexLock lock(mutex_);
    calls_.clear();
  }
  /// The latest request for hints of `resource`.
  ContainerRequest hinted(const std::string& resource) const {
    const MutexLock lock(mutex_);
    return hinted_.at(resource);
  }
  /// The latest request to a compute driver.
  sdk::ComputeRequest computed() const {
    const MutexLock lock(mutex_);
    return computed_;
  }
  /// The latest request of an Allocate for `resource`.
  ContainerRequest allocated(const std::string& resource) const {
    const MutexLock lock(mutex_);
    return allocated_.at(resource);
  }

  std::vector<manager::PluginInfo> List() const override {
    const MutexLock lock(mutex_);
    std::vector<manager::PluginInfo> infos;
    infos.reserve(scripts_.size());
    for (const auto& [resource, script] : scripts_) {
      infos.push_back(Info(resource, script));
    }
    return infos;
  }
  std::optional<manager::PluginInfo> Find(const std::string& resource) const override {
    const MutexLock lock(mutex_);
    const auto found = scripts_.find(resource);
    return found == scripts_.end() ? std::nullopt : std::optional(Info(resource, found->second));
  }

  void MarkSuspect(const std::string& resource, const std::string& problem) override {
    const MutexLock lock(mutex_);
    calls_.push_back("suspect " + resource);
    suspicions_[resource] = problem;
  }
  void Forget(const std::string& resource) override { Drop(resource); }
  std::string suspicion(const std::string& resource) const {
    const MutexLock lock(mutex_);
    const auto found = suspicions_.find(resource);
    return found == suspicions_.end() ? std::string() : found->second;
  }

 private:
  // NOLINTNEXTLINE(readability-function-size): one entry per call
  void Start(const std::string& resource, std::shared_ptr<calls::Call> call, Deadline) override {
    const bool answered =
        AnswerIf<calls::GetTopologyHints>(call, [&](const auto& r) { return Hints(r); }) ||
        AnswerIf<calls::Allocate>(call, [&](const auto& r) { return Gives(r); }) ||
        AnswerIf<calls::RemovePod>(
            call,
            [&](const std::string& uid) {
              return Done(Note(fmt::format("remove {} {}", resource, uid), resource).removes);
            }) ||
        AnswerIf<calls::ReleaseContainer>(call,
                                          [&](const ContainerKey& key) {
                                            const std::string entry =
                                                fmt::format("release {} {}/{}", resource,
                                                            key.pod_uid, key.container);
                                            return Done(Note(entry, resource).releases);
                                          }) ||
        AnswerIf<calls::Restore>(call,
                                 [&](const auto& r) { return Restored(resource, r.grants); }) ||
        AnswerIf<calls::PreStartContainer>(call,
                                           [&](const calls::PreStartContainer::Request& request) {
                                             const std::string entry = fmt::format(
                                                 "prepare {} {}/{}", resource, request.key.pod_uid,
                                                 request.key.container);
                                             return Done(Note(entry, resource).prepares);
                                           }) ||
        AnswerIf<calls::GetPools>(call, [&](const auto&) { return ScriptOf(resource).pools; }) ||
        AnswerIf<calls::GetAllocatable>(
            call,
            [&](const auto&) {
              return StatusOr<AllocatableByResource>(
                  AllocatableByResource{{resource, ScriptOf(resource).offers}});
            }) ||
        AnswerIf<calls::ComputeAdmit>(call, [&](const auto& r) { return Computed(r); }) ||
        AnswerIf<calls::ComputeHints>(
            call,
            [&](const auto& r) {
              return Note(fmt::format("hints {} {}/{}", resource, r.key.pod_uid, r.key.container),
                          resource)
                  .hints;
            }) ||
        AnswerIf<calls::ComputeAdd>(call,
                                    [&](const auto& r) {
                                      Note(fmt::format("add {} {}/{}={}", resource, r.key.pod_uid,
                                                       r.key.container, ToString(r.cpus)),
                                           resource);
                                      return StatusOr<calls::Nothing>(calls::Nothing{});
                                    }) ||
        AnswerIf<calls::ComputeRemove>(call,
                                       [&](const auto& r) {
                                         const std::string entry =
                                             fmt::format("end {} {}/{}", resource, r.key.pod_uid,
                                                         r.key.container);
                                         return Done(Note(entry, resource).ends);
                                       }) ||
        AnswerIf<calls::GetResourcesAllocation>(call,
                                                [&](const auto&) { return Held(resource); }) ||
        AnswerIf<calls::GetChangedAllocations>(call, [&](const std::string& since) {
          return Note(fmt::format("changes {} since {}", resource, since), resource).changes;
        });
    if (!answered) {
      call->Fail(Errorf(StatusCode::kUnimplemented, "not in the script"), calls::Blame::kRefusal);
    }
  }

  PluginScript ScriptOf(const std::string& resource) const {
    const MutexLock lock(mutex_);
    return scripts_.at(resource);
  }
  StatusOr<sdk::ComputeGrant> Computed(const sdk::ComputeRequest& request) {
    {
      const MutexLock lock(mutex_);
      computed_ = request;
    }
    return Note(fmt::format("admit {} {}/{}", request.resource, request.key.pod_uid,
                            request.key.container),
                request.resource)
        .computes;
  }
  static StatusOr<calls::Nothing> Done(const Status& status) {
    return status.ok() ? StatusOr<calls::Nothing>(calls::Nothing{}) : status;
  }
  StatusOr<HintList> Hints(const ContainerRequest& request) {
    const PluginScript script = Note("hints " + request.resource, request.resource);
    const MutexLock lock(mutex_);
    hinted_[request.resource] = request;
    return script.hints;
  }
  StatusOr<AllocationByResource> Gives(const ContainerRequest& request) {
    const PluginScript script = Note("allocate " + request.resource, request.resource);
    const MutexLock lock(mutex_);
    allocated_[request.resource] = request;
    return script.gives;
  }
  StatusOr<calls::Nothing> Restored(const std::string& resource, const sdk::Grants& grants) {
    for (const auto& [key, grant] : grants) {
      Note(fmt::format("restore {} {}/{}={}", resource, key.pod_uid, key.container,
                       grant.allocation->value),
           resource);
    }
    const MutexLock lock(mutex_);
    return Done(scripts_.at(resource).restores);
  }
  StatusOr<calls::HeldAllocations> Held(const std::string& resource) {
    const PluginScript script = Note("holdings " + resource, resource);
    QRM_ASSIGN_OR_RETURN(const AllocationByContainer holds, script.holds);
    return calls::ToHeld(holds);
  }

  static manager::PluginInfo Info(const std::string& resource, const PluginScript& script) {
    return {.resource = resource,
            .endpoint = "/run/" + resource + ".sock",
            .registered_by = script.registered_by,
            .options = script.options,
            .live = script.live,
            .problem = script.problem};
  }
  PluginScript Note(const std::string& call, const std::string& resource) {
    on_call(call);
    const MutexLock lock(mutex_);
    calls_.push_back(call);
    return scripts_.at(resource);
  }

  mutable Mutex mutex_;
  std::map<std::string, PluginScript> scripts_ QRM_GUARDED_BY(mutex_);
  std::map<std::string, ContainerRequest> hinted_ QRM_GUARDED_BY(mutex_);
  sdk::ComputeRequest computed_ QRM_GUARDED_BY(mutex_);
  std::map<std::string, ContainerRequest> allocated_ QRM_GUARDED_BY(mutex_);
  std::map<std::string, std::string> suspicions_ QRM_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::test
