// Drives a ResourcePlugin: answers from its grants if possible, else asks the plugin, and writes
// every change to disk before the answer.
#pragma once

#include <atomic>
#include <cstdint>
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
#include "plugins/sdk/held_list.h"
#include "plugins/sdk/plugin_state.h"
#include "plugins/sdk/resource_plugin.h"

namespace qrm::sdk {

/// Whether a recorded grant that serves a request answers it, or is replaced by a new decision.
enum class Recorded { kAnswers, kIsReplaced };

/// Runs one plugin: records its grants on disk, and turns an exception from the plugin's code into
/// kInternal.
///
/// Threads: one; the host's plugin thread.
class PluginDriver {
 public:
  /// `plugin` must outlive the driver: its listeners are notified of changes also after a Replace.
  /// `state_dir` is passed to the plugin's Begin.
  PluginDriver(ResourcePlugin& plugin, std::string resource, std::unique_ptr<PluginState> state,
               std::string state_dir = "");

  /// Restores the plugin's recorded state. Errors: the state's, or the plugin's from Restore.
  Status Start();

  const PluginOptions& options() const { return options_; }
  /// The plugin's AnswersAreQuick. Threads: any, after Start.
  bool answers_are_quick() const { return answers_are_quick_; }
  /// Whether the manager restores grants lost in a power loss, so that Allocate need not wait for
  /// the disk. Threads: any.
  bool is_taught() const { return is_taught_; }
  const SharedText& resource() const { return resource_; }
  const Grants& grants() const { return grants_; }
  /// All allocations. The result is the same object while grants() does not change.
  HeldAllocations Held();
  /// What changed since `since`, the `now` of an earlier answer; all allocations if `since` is too
  /// old or not from this driver.
  ChangedAllocations ChangesSince(const std::string& since) const;

  StatusOr<HintList> Hints(const ContainerRequest& request);
  /// A request that a grant serves gets the current allocation of that grant. Errors: the plugin's;
  /// kUnavailable when the grant could not be written; the plugin then removed it.
  StatusOr<Shared<ResourceAllocation>> Allocate(const ContainerRequest& request,
                                                Recorded recorded = Recorded::kAnswers);
  /// Both are idempotent. Errors: kUnavailable when the removal could not be written; repeat it.
  Status RemovePod(const std::string& pod_uid);
  Status ReleaseContainer(const ContainerKey& key);
  /// Replaces the grants of the containers in `held` by the manager's records, and the plugin's
  /// saved state by `saved`, if given. Grants of other containers stay. A manager that calls this,
  /// even with an empty `held`, restores lost grants: later grants need not survive a power loss
  /// here. Errors: the plugin's from Restore; kInvalidArgument for a grant of another resource,
  /// kFailedPrecondition for exclusive CPUs that the plugin holds for other containers;
  /// kUnavailable when it could not be written. Then nothing changes.
  Status Restore(const Grants& held, const std::optional<std::string>& saved = {});
  /// Updates grants() to what the plugin wants now. If the disk write fails, the change is applied
  /// all the same, since the plugin would want it again after a restart. It is written with the
  /// next successful change. Errors: the plugin's.
  Status Reconcile();

  /// Of the plugin's resource and of those beside it.
  StatusOr<AllocatableByResource> Allocatable() const;
  StatusOr<std::vector<Pool>> Pools() const;
  StatusOr<std::string> ExportState() const;
  /// Errors: the plugin's; kUnavailable when the pools could not be written; they are then as
  /// before.
  Status SetPools(const std::map<std::string, CpuSet>& cpus_by_pool);

  /// Restores all grants and the saved state in `next`, the plugin with another configuration, as a
  /// restart would. `next` does not serve yet. Errors: `next`'s from Restore; kFailedPrecondition
  /// when its options differ.
  Status Prepare(ResourcePlugin& next);
  /// Lets `next` serve from now on. Prepare must have accepted it, without another call since. The
  /// manager is asked to reconcile, and that Reconcile reports what `next` wants to change.
  void Replace(std::unique_ptr<ResourcePlugin> next);

  /// What `next`, the plugin with another configuration, would do with all current grants.
  struct Trial {
    Grants changed;  ///< the grants that would change
    std::vector<Pool> pools;
  };
  /// Asks `next`, which does not serve afterwards either. Errors: those of Prepare and Reconcile.
  StatusOr<Trial> Try(ResourcePlugin& next);

  /// Calls `question` with the plugin; it returns a Status or StatusOr and must not change
  /// allocations. `function`, a literal, names the call in the error for an exception.
  template <typename Question>
  auto Ask(const char* function, const Question& question) const
      -> decltype(question(std::declval<ResourcePlugin&>())) {
    try {
      return question(*serving_);
    } catch (...) {
      return Threw(function);
    }
  }

  /// The same for a member function of the plugin that returns its answer.
  template <typename Answer, typename... Parameters, typename... Args>
  StatusOr<Answer> Get(const char* function, Answer (ResourcePlugin::*get)(Parameters...) const,
                       const Args&... args) const {
    return Ask(function, [&](const ResourcePlugin& plugin) -> StatusOr<Answer> {
      return (plugin.*get)(args...);
    });
  }

  /// The same with the plugin as an `Also`. Errors: kUnimplemented with `missing` if it is none.
  template <typename Also, typename Question>
  auto AskAs(const char* function, const char* missing, const Question& question) const
      -> decltype(question(std::declval<Also&>())) {
    return Ask(function, [&](ResourcePlugin& plugin) -> decltype(question(std::declval<Also&>())) {
      if (auto* const also = dynamic_cast<Also*>(&plugin); also != nullptr) {
        return question(*also);
      }
      return Status(StatusCode::kUnimplemented, missing);
    });
  }

 private:
  using Allocations = std::map<ContainerKey, ResourceAllocation>;

  StatusOr<Allocations> Wanted(const Grants& grants) const;
  /// The error for the exception that is being handled.
  Status Threw(const char* function) const;
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
  std::unique_ptr<ResourcePlugin> replacement_;  ///< of plugin_; null before the first Replace
  ResourcePlugin* serving_;                      ///< the replacement, else plugin_
  SharedText resource_;
  std::unique_ptr<PluginState> state_;
  const std::string state_dir_;
  PluginOptions options_;
  bool answers_are_quick_ = false;
  Grants grants_;
  Grants unsaved_;         ///< the grants whose write to disk failed
  RecentChanges changes_;  ///< of grants_
  HeldAllocations held_;   ///< as of held_count_; null before the first
  uint64_t held_count_ = 0;
  Interner<Shared<ResourceAllocation>> given_;
  Interner<Shared<std::map<std::string, double>>> asked_;
  std::optional<std::string> saved_;  ///< the plugin's saved state, as on disk
  std::atomic<bool> is_taught_ = false;
};

}  // namespace qrm::sdk
