// Drives a ResourcePlugin: answers from its grants first, then by the plugin, with every change on
// disk before the answer.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/base/interner.h"
#include "api/base/status.h"
#include "api/resource.h"
#include "plugins/sdk/allocations_answer.h"
#include "plugins/sdk/changed_allocations.h"
#include "plugins/sdk/held_list.h"
#include "plugins/sdk/plugin_state.h"
#include "plugins/sdk/recent_changes.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// Runs one plugin: knows what it granted, keeps that on disk, and turns an exception of the
/// author's code into kInternal.
///
/// Threads: one; the host's plugin thread.
class PluginDriver {
 public:
  /// `plugin` outlives the driver: its listeners hear of changes, whoever is in its place.
  /// `state_dir` is what it begins with.
  PluginDriver(ResourcePlugin& plugin, std::string resource, std::unique_ptr<PluginState> state,
               std::string state_dir = "");

  /// Gives the plugin back what was kept. Errors: the state's, or the plugin's from Restore.
  Status Start();

  const PluginOptions& options() const { return options_; }
  /// As the plugin's AnswersAreQuick. Threads: any, once it has started.
  bool answers_are_quick() const { return answers_are_quick_; }
  /// Whether the manager teaches what a power loss takes back, so that Allocate waits for no disk.
  /// Threads: any.
  bool is_taught() const { return is_taught_; }
  const SharedText& resource() const { return resource_; }
  const Grants& grants() const { return grants_; }
  /// All allocations as the answer to GetResourcesAllocation: for a socket, and for the manager's
  /// own process. The same one while grants() is.
  const AllocationsAnswer::Bytes& SerializedAllocations();
  std::shared_ptr<const HeldList> Held();
  /// What changed since `since`, the `now` of an earlier answer; all that is held when that is too
  /// long ago, or not of this driver.
  ChangedAllocations ChangesSince(const std::string& since) const;

  StatusOr<HintList> Hints(const ContainerRequest& request);
  /// A request that a grant serves gets what that is now. Errors: the plugin's; kUnavailable when
  /// the grant could not be kept, and the plugin has been told to remove it.
  StatusOr<Shared<ResourceAllocation>> Allocate(const ContainerRequest& request);
  /// Both are idempotent. Errors: kUnavailable when the removal could not be kept; repeat it.
  Status RemovePod(const std::string& pod_uid);
  Status ReleaseContainer(const ContainerKey& key);
  /// Makes `held` the grants of its containers, as the manager records them, and `saved`, if any,
  /// what the plugin kept; those of other containers stay. Errors: the plugin's from Restore;
  /// kInvalidArgument for a grant of another resource, kFailedPrecondition for CPUs of its own that
  /// the plugin holds for others; kUnavailable when it could not be kept. All
  /// is as before then. A manager that calls it, if only with nothing, teaches: what is granted
  /// afterwards need not survive a power loss here.
  Status Restore(const Grants& held, const std::optional<std::string>& saved = {});
  /// Brings grants() up to date with what the plugin wants applied now. What the disk refuses is
  /// applied all the same, since the plugin would want it again after a restart, and written with
  /// the next change that the disk takes. Errors: the plugin's.
  Status Reconcile();

  StatusOr<AllocatableResource> Allocatable() const;
  StatusOr<std::vector<Pool>> Pools() const;
  StatusOr<std::string> ExportState() const;
  /// Errors: the plugin's; kUnavailable when it could not be kept, and the pools are as before.
  Status SetPools(const std::map<std::string, CpuSet>& cpus_by_pool);

  /// Gives `next`, the plugin with another configuration, what was given and kept, as a restart
  /// would; it serves nobody yet. Errors: `next`'s from Restore; kFailedPrecondition when it asks
  /// other things of the manager.
  Status Prepare(ResourcePlugin& next);
  /// Has `next` serve from now on, which Prepare has accepted and no call came after; what it wants
  /// otherwise than it was given is told by the next Reconcile, for which the manager is asked.
  void Replace(std::unique_ptr<ResourcePlugin> next);

  /// What `next`, the plugin with another configuration, would make of all that was given.
  struct Trial {
    Grants changed;  ///< those that would be otherwise
    std::vector<Pool> pools;
  };
  /// Asks `next`, which serves nobody then either. Errors: those of Prepare and Reconcile.
  StatusOr<Trial> Try(ResourcePlugin& next);

  /// What `question` gets from the plugin, a Status or StatusOr; for what changes no allocation.
  /// `function`, a literal, names it in the error for an exception.
  template <typename Question>
  auto Ask(const char* function, const Question& question) const
      -> decltype(question(std::declval<ResourcePlugin&>())) {
    try {
      return question(*serving_);
    } catch (const std::exception& error) {
      return Threw(function, error.what());
    } catch (...) {
      return Threw(function, "no exception class of C++");
    }
  }

 private:
  Status Threw(const char* function, std::string_view what) const;
  void LoadSaved(const std::string& saved);
  Status GiveBack(const Grants& grants, const std::optional<std::string>& saved);
  Status CheckKept(const Grants& all, const Grants& held);
  void GoBack();
  void TakeUpRepairs();
  Status Remove(const std::vector<ContainerKey>& keys, StateChange change);
  StatusOr<Grants> ChangedGrants();
  Status Commit(StateChange change);
  StateChange Everything(StateChange change, const std::string& saved) const;
  void TakeOver(Grants changed);
  void Share(Grant& grant);
  void Put(const ContainerKey& key, Grant grant);
  void Erase(const ContainerKey& key);
  void RestorePools(const std::vector<Pool>& pools);
  void Begin() const;

  ResourcePlugin& plugin_;
  std::unique_ptr<ResourcePlugin> replacement_;  ///< of plugin_, once there is one
  ResourcePlugin* serving_;                      ///< the replacement, else plugin_
  SharedText resource_;
  std::unique_ptr<PluginState> state_;
  const std::string state_dir_;
  PluginOptions options_;
  bool answers_are_quick_ = false;
  Grants grants_;
  Grants unsaved_;         ///< those of grants_ that the disk has refused
  RecentChanges changes_;  ///< of grants_
  AllocationsAnswer allocations_;
  std::shared_ptr<const HeldList> held_;  ///< as of held_count_; null before the first
  uint64_t held_count_ = 0;
  Interner<Shared<ResourceAllocation>> given_;
  Interner<Shared<std::map<std::string, double>>> asked_;
  std::optional<std::string> saved_;  ///< the plugin's own state as it is on disk
  std::atomic<bool> is_taught_ = false;
};

}  // namespace qrm::sdk
