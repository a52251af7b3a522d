// Plugins that answer, fail and go away as a test says, and that remember in which order they were
// called.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/ranges.h>

#include "api/base/mutex.h"
#include "manager/registry/plugins.h"

namespace qrm::test {

/// How one plugin behaves; the default gives what `gives` says, on any node, and lets it go.
struct PluginScript {
  PluginOptions options{.with_topology_alignment = true, .need_reconcile = true};
  bool live = true;
  std::string problem;
  StatusOr<HintList> hints = HintList::NoPreference();
  StatusOr<AllocationByResource> gives = AllocationByResource{};
  Status removes;
  Status releases;
  StatusOr<AllocationByContainer> holds = AllocationByContainer{};
  std::optional<manager::HeldAllocations> repeats;  ///< said again and again in place of `holds`
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
  /// "hints cpu", "allocate cpu", "remove cpu uid", "release cpu uid/name", "holdings" of
  /// all, "holdings cpu".
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
  std::string suspicion(const std::string& resource) const {
    const MutexLock lock(mutex_);
    const auto found = suspicions_.find(resource);
    return found == suspicions_.end() ? std::string() : found->second;
  }

  std::vector<StatusOr<HintList>> GetTopologyHints(const std::vector<ContainerRequest>& requests,
                                                   Deadline) override {
    std::vector<StatusOr<HintList>> answers;
    for (const ContainerRequest& request : requests) {
      answers.push_back(Note("hints " + request.resource, request.resource).hints);
      const MutexLock lock(mutex_);
      hinted_[request.resource] = request;
    }
    return answers;
  }
  std::vector<StatusOr<AllocationByResource>> Allocate(
      const std::vector<ContainerRequest>& requests, Deadline) override {
    std::vector<StatusOr<AllocationByResource>> answers;
    for (const ContainerRequest& request : requests) {
      answers.push_back(Note("allocate " + request.resource, request.resource).gives);
      const MutexLock lock(mutex_);
      allocated_[request.resource] = request;
    }
    return answers;
  }
  std::map<std::string, Status> RemovePod(const std::string& pod_uid,
                                          const std::vector<std::string>& resources,
                                          Deadline) override {
    std::map<std::string, Status> answers;
    for (const std::string& resource : resources) {
      answers[resource] = Note(fmt::format("remove {} {}", resource, pod_uid), resource).removes;
    }
    return answers;
  }
  std::map<std::string, Status> ReleaseContainer(const ContainerKey& key,
                                                 const std::vector<std::string>& resources,
                                                 Deadline) override {
    std::map<std::string, Status> answers;
    for (const std::string& resource : resources) {
      answers[resource] =
          Note("release " + resource + " " + key.pod_uid + "/" + key.container, resource).releases;
    }
    return answers;
  }
  void GetResourcesAllocation(const std::set<std::string>& resources, Deadline,
                              std::function<void(manager::AllocationsByPlugin)> done) override {
    on_call("holdings");
    manager::AllocationsByPlugin answers;
    {
      const MutexLock lock(mutex_);
      calls_.push_back(
          fmt::format("holdings{}{}", resources.empty() ? "" : " ", fmt::join(resources, " ")));
      for (const auto& [resource, script] : scripts_) {
        const bool asked =
            resources.empty() ? script.options.need_reconcile : resources.contains(resource);
        if (script.live && asked) {
          answers.emplace(resource, script.repeats.has_value()
                                        ? StatusOr<manager::HeldAllocations>(*script.repeats)
                                        : script.holds);
        }
      }
    }
    done(std::move(answers));
  }

  void GetAllocatable(
      Deadline, std::function<void(
                    std::map<std::string, StatusOr<std::map<std::string, AllocatableResource>>>)>
                    done) override {
    done({});
  }
  void GetPlacement(const ContainerKey&, const std::string&, Deadline,
                    std::function<void(StatusOr<manager::PlacedByResource>)> done) override {
    done(manager::PlacedByResource{});
  }
  void GetPools(const std::string&, Deadline, manager::PoolsCallback done) override {
    done(std::vector<manager::PoolInfo>{});
  }
  void SetPools(const std::string&, const std::map<std::string, std::string>&, Deadline,
                manager::PoolsCallback done) override {
    done(std::vector<manager::PoolInfo>{});
  }

 private:
  static manager::PluginInfo Info(const std::string& resource, const PluginScript& script) {
    return {.resource = resource,
            .endpoint = "/run/" + resource + ".sock",
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
  std::map<std::string, ContainerRequest> allocated_ QRM_GUARDED_BY(mutex_);
  std::map<std::string, std::string> suspicions_ QRM_GUARDED_BY(mutex_);
  std::vector<std::string> calls_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::test
