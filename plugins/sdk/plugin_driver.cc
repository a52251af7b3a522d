// Answers each call from the grants where they suffice, else asks the plugin. Always writes to disk
// before it answers.
#include "plugins/sdk/plugin_driver.h"

#include <exception>
#include <memory>
#include <utility>

#include <boost/container_hash/hash.hpp>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/wire.h"
#include "plugins/sdk/change_signal.h"

namespace qrm::sdk {
namespace {

/// True when `granted` is complete, covers every amount of `request`, and lies within its hint.
bool Serves(const Grant& granted, const ContainerRequest& request) {
  if (granted.request.limit != request.limit || granted.allocation->lacks > 0) {
    return false;
  }
  for (const auto& [name, amount] : request.requests) {
    const auto had = granted.request.requests.find(name);
    if (had == granted.request.requests.end() || had->second != amount) {
      return false;
    }
  }
  if (!request.hint.has_value() || request.hint->nodes.Empty()) {
    return true;
  }
  const NumaMask nodes =
      granted.request.hint.has_value() ? granted.request.hint->nodes : NumaMask();
  return !nodes.Empty() && nodes.IsSubsetOf(request.hint->nodes);
}

std::shared_ptr<const ResourceAllocation> AdmittedOf(const Grant& grant) {
  return grant.admitted != nullptr ? grant.admitted
                                   : std::make_shared<const ResourceAllocation>(grant.allocation);
}

/// The manager rejects what cannot be read, and the state could not be read after a restart.
/// Plugins on the SDK set ResourceAllocation::exclusive where it holds.
PluginOptions OptionsOf(const ResourcePlugin& plugin) {
  PluginOptions options = plugin.Options();
  options.says_exclusive = true;
  return options;
}

Status CheckAllocation(const ResourceAllocation& allocation) {
  return Annotate(wire::Check(allocation), "cannot use the plugin's allocation");
}

}  // namespace

PluginDriver::PluginDriver(ResourcePlugin& plugin, std::string resource,
                           std::unique_ptr<PluginState> state, std::string state_dir)
    : plugin_(plugin),
      serving_(&plugin),
      resource_(std::move(resource)),
      state_(std::move(state)),
      state_dir_(std::move(state_dir)) {}

StatusOr<PluginDriver::Allocations> PluginDriver::Wanted(const Grants& grants) const {
  return Ask("Reconcile", [&](ResourcePlugin& plugin) { return plugin.Reconcile(grants); });
}

Status PluginDriver::Threw(const char* function) const {
  std::string what;
  try {
    throw;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "not a std::exception";
  }
  return Errorf(StatusCode::kInternal,
                "cannot finish {} of the plugin of {}: it threw \"{}\"; report it to the plugin's "
                "author",
                function, resource_, what);
}

Status PluginDriver::Start() {
  QRM_ASSIGN_OR_RETURN(StoredState stored, state_->Load());
  saved_ = std::move(stored.saved);
  grants_ = std::move(stored.grants);
  for (auto& [key, grant] : grants_) {
    Share(grant);
  }
  QRM_RETURN_IF_ERROR(GiveBack(grants_, saved_));
  QRM_ASSIGN_OR_RETURN(options_,
                       Ask("Options", [&](ResourcePlugin& plugin) -> StatusOr<PluginOptions> {
                         return OptionsOf(plugin);
                       }));
  answers_are_quick_ = serving_->AnswersAreQuick();
  Begin();
  // A plugin that starts without grants may have saved state for the grants that are restored
  // later.
  if (!grants_.empty()) {
    TakeUpRepairs();
  }
  return OkStatus();
}

void PluginDriver::Begin() const {
  const Status begun = Ask("Begin", [this](ResourcePlugin& plugin) {
    plugin.Begin(state_dir_);
    return OkStatus();
  });
  if (!begun.ok()) {
    log::Warning("plugin did not begin all of its own work",
                 {{"resource", resource_}, {"error", MessageOf(begun)}});
  }
}

// Restore may have repaired grants; answers must not use the earlier ones.
void PluginDriver::TakeUpRepairs() {
  if (const Status reconciled = Reconcile(); !reconciled.ok()) {
    log::Warning("cannot reconcile the plugin after its restore; its allocations stay as they were",
                 {{"resource", resource_}, {"error", MessageOf(reconciled)}});
  }
}

Status PluginDriver::GiveBack(const Grants& grants, const std::optional<std::string>& saved) {
  if (saved.has_value()) {
    LoadSaved(*saved);
  }
  return Ask("Restore", [&](ResourcePlugin& plugin) { return plugin.Restore(grants); });
}

void PluginDriver::LoadSaved(const std::string& saved) {
  const Status loaded =
      Ask("LoadState", [&](ResourcePlugin& plugin) { return plugin.LoadState(saved); });
  if (!loaded.ok()) {
    log::Warning("cannot load the plugin's saved state; it continues without",
                 {{"resource", resource_}, {"error", MessageOf(loaded)}});
  }
}

/// Returns the plugin to the recorded grants after a change that failed.
void PluginDriver::GoBack() {
  if (const Status back = GiveBack(grants_, saved_); !back.ok()) {
    log::Error("cannot return the plugin to its recorded allocations",
               {{"resource", resource_}, {"error", MessageOf(back)}});
  }
}

/// A container's exclusive CPUs must not be lost to grants that the plugin still has for others.
Status PluginDriver::CheckKept(const Grants& all, const Grants& held) {
  QRM_ASSIGN_OR_RETURN(const Allocations wanted, Wanted(all));
  for (const auto& [key, grant] : held) {
    const auto now = wanted.find(key);
    if (grant.allocation->exclusive && now != wanted.end() &&
        now->second.value != grant.allocation->value) {
      return Errorf(StatusCode::kFailedPrecondition,
                    "cannot restore {} of container {} of pod {}: the plugin of {} holds some of "
                    "it for other containers; release those first",
                    grant.allocation->value, key.container, key.pod_uid, resource_);
    }
  }
  return OkStatus();
}

Status PluginDriver::Restore(const Grants& held, const std::optional<std::string>& saved) {
  is_taught_ = true;
  if (held.empty() && !saved.has_value()) {
    return OkStatus();
  }
  Grants all = grants_;
  for (const auto& [key, grant] : held) {
    if (grant.request.resource != resource_) {
      return Errorf(StatusCode::kInvalidArgument,
                    "cannot restore an allocation of {}: this plugin serves {}",
                    grant.request.resource, resource_);
    }
    all.insert_or_assign(key, grant);
  }
  Status taken = GiveBack(all, saved.has_value() ? saved : saved_);
  if (taken.ok() && !grants_.empty()) {
    taken = CheckKept(all, held);
  }
  if (taken.ok()) {
    taken = Commit({.granted = held});
  }
  if (!taken.ok()) {
    GoBack();
    return taken;
  }
  TakeOver(held);
  TakeUpRepairs();
  return OkStatus();
}

StatusOr<HintList> PluginDriver::Hints(const ContainerRequest& request) {
  const auto known = grants_.find(request.key);
  const bool is_held = known != grants_.end() && Serves(known->second, request);
  try {  // not by Ask: the walk from an admission to a policy is short
    return is_held ? serving_->HeldHints(known->second, request) : serving_->Hints(request);
  } catch (...) {
    return Threw(is_held ? "HeldHints" : "Hints");
  }
}

StatusOr<Shared<ResourceAllocation>> PluginDriver::Allocate(const ContainerRequest& request,
                                                            Recorded recorded) {
  const auto known = grants_.find(request.key);
  if (recorded == Recorded::kAnswers && known != grants_.end() && Serves(known->second, request)) {
    QRM_RETURN_IF_ERROR(Reconcile());  // CPUs that it shares may have become exclusive
    return known->second.allocation;
  }
  const TopologyHint hint = request.hint.value_or(TopologyHint());
  StatusOr<ResourceAllocation> allocation;
  try {
    allocation = serving_->Allocate(request, hint);
  } catch (...) {
    allocation = Threw("Allocate");
  }
  QRM_RETURN_IF_ERROR(allocation.status());
  Status kept = CheckAllocation(*allocation);
  Grant grant{.request = request, .allocation = *std::move(allocation)};
  Share(grant);
  StateChange change;
  change.granted.emplace(request.key, grant);
  if (kept.ok()) {
    kept = Commit(std::move(change));
  }
  if (!kept.ok()) {
    GoBack();
    return kept;
  }
  Shared<ResourceAllocation> given = grant.allocation;
  Put(request.key, std::move(grant));
  return given;
}

// Containers of one pool differ in little except their names.
void PluginDriver::Share(Grant& grant) {
  grant.request.resource = resource_;
  grant.request.requests = asked_.Intern(std::move(grant.request.requests));
  grant.allocation = given_.Intern(std::move(grant.allocation));
}

void PluginDriver::Put(const ContainerKey& key, Grant grant) {
  grants_.insert_or_assign(key, std::move(grant));
  changes_.Note(key);
}

void PluginDriver::Erase(const ContainerKey& key) {
  grants_.erase(key);
  unsaved_.erase(key);
  changes_.Note(key);
}

Status PluginDriver::RemovePod(const std::string& pod_uid) {
  std::vector<ContainerKey> keys;
  for (auto grant = grants_.lower_bound({pod_uid, ""});
       grant != grants_.end() && grant->first.pod_uid == pod_uid; ++grant) {
    keys.push_back(grant->first);
  }
  return Remove(keys, {.removed_pod = pod_uid});
}

Status PluginDriver::ReleaseContainer(const ContainerKey& key) {
  std::vector<ContainerKey> keys;
  if (grants_.contains(key)) {
    keys.push_back(key);
  }
  return Remove(keys, {.removed = {key}});
}

/// Keys without a grant are removed from disk too: an earlier removal may have failed there.
Status PluginDriver::Remove(const std::vector<ContainerKey>& keys, StateChange change) {
  Status told;
  if (!keys.empty()) {
    told = Ask("Remove", [&](ResourcePlugin& plugin) {
      plugin.Remove(keys);
      return OkStatus();
    });
  }
  for (const ContainerKey& key : keys) {
    Erase(key);
  }
  QRM_RETURN_IF_ERROR(Commit(std::move(change)));
  return told;
}

Status PluginDriver::Reconcile() {
  QRM_ASSIGN_OR_RETURN(Grants changed, ChangedGrants());
  if (const Status kept = Commit({.granted = changed}); !kept.ok()) {
    if (kept.code() != StatusCode::kUnavailable) {
      return kept;
    }
    if (unsaved_.empty() && !changed.empty()) {
      log::Warning(
          "cannot write changed allocations; they stay in memory until the disk accepts them",
          {{"resource", resource_}, {"error", MessageOf(kept)}});
    }
    changed.merge(unsaved_);
    unsaved_ = changed;
  }
  TakeOver(std::move(changed));
  return OkStatus();
}

void PluginDriver::TakeOver(Grants changed) {
  for (auto& [key, grant] : changed) {
    Share(grant);
    Put(key, std::move(grant));
  }
}

StatusOr<Grants> PluginDriver::ChangedGrants() {
  QRM_ASSIGN_OR_RETURN(const Allocations wanted, Wanted(grants_));
  Grants changed;
  for (const auto& [key, allocation] : wanted) {
    const auto known = grants_.find(key);
    if (known == grants_.end()) {
      return Errorf(StatusCode::kInternal,
                    "cannot reconcile {}: the plugin changed container {} of pod {}, which has no "
                    "allocation; report it to the plugin's author",
                    resource_, key.container, key.pod_uid);
    }
    if (known->second.allocation != allocation) {
      QRM_RETURN_IF_ERROR(CheckAllocation(allocation));
      const Grant& before = known->second;
      changed.emplace(key, Grant{.request = before.request,
                                 .allocation = allocation,
                                 .admitted = AdmittedOf(before)});
    }
  }
  return changed;
}

HeldAllocations PluginDriver::Held() {
  if (held_ == nullptr || held_count_ != changes_.count()) {
    HeldList list;
    list.reserve(grants_.size());
    for (const auto& [key, grant] : grants_) {
      list.push_back({.key = key, .resource = resource_, .allocation = grant.allocation});
    }
    held_ = std::make_shared<const HeldList>(std::move(list));
    held_count_ = changes_.count();
  }
  return held_;
}

ChangedAllocations PluginDriver::ChangesSince(const std::string& since) const {
  ChangedAllocations answer{.now = changes_.now(), .changed = {}};
  const auto add = [&](const ContainerKey& key, const Grant& grant) {
    answer.changed[key].emplace(resource_, grant.allocation);
  };
  if (const auto keys = changes_.Since(since); keys.has_value()) {
    for (const ContainerKey& key : *keys) {
      if (const auto held = grants_.find(key); held != grants_.end()) {
        add(key, held->second);
      }
    }
  } else {
    for (const auto& [key, grant] : grants_) {
      add(key, grant);
    }
  }
  return answer;
}

StatusOr<AllocatableByResource> PluginDriver::Allocatable() const {
  return Ask("Allocatable",
             [this](const ResourcePlugin& plugin) -> StatusOr<AllocatableByResource> {
               AllocatableByResource resources = plugin.AllocatableBeside();
               resources.insert_or_assign(resource_, plugin.Allocatable());
               return resources;
             });
}

StatusOr<std::vector<Pool>> PluginDriver::Pools() const {
  return Get("Pools", &ResourcePlugin::Pools);
}

StatusOr<std::string> PluginDriver::ExportState() const {
  return Get("ExportState", &ResourcePlugin::ExportState, grants_);
}

Status PluginDriver::SetPools(const std::map<std::string, CpuSet>& cpus_by_pool) {
  QRM_ASSIGN_OR_RETURN(const std::vector<Pool> before, Pools());
  QRM_RETURN_IF_ERROR(
      Ask("SetPools", [&](ResourcePlugin& plugin) { return plugin.SetPools(cpus_by_pool); }));
  StatusOr<Grants> changed = ChangedGrants();
  Status kept = changed.ok() ? Commit({.granted = *changed}) : changed.status();
  if (!kept.ok()) {
    RestorePools(before);
    return kept;
  }
  TakeOver(*std::move(changed));
  plugin_.NotifyChanged();  // the caller may be another process than the manager
  return OkStatus();
}

void PluginDriver::RestorePools(const std::vector<Pool>& pools) {
  std::map<std::string, CpuSet> cpus_by_pool;
  for (const Pool& pool : pools) {
    cpus_by_pool.emplace(pool.name, pool.cpus);
  }
  const Status restored =
      Ask("SetPools", [&](ResourcePlugin& plugin) { return plugin.SetPools(cpus_by_pool); });
  if (!restored.ok()) {
    log::Error("cannot return the pools to their state on disk",
               {{"resource", resource_}, {"error", MessageOf(restored)}});
  }
}

Status PluginDriver::Prepare(ResourcePlugin& next) {
  QRM_ASSIGN_OR_RETURN(const std::string saved, Get("SaveState", &ResourcePlugin::SaveState));
  ResourcePlugin* const former = std::exchange(serving_, &next);
  Status ready = GiveBack(grants_, saved.empty() ? std::nullopt : std::optional(saved));
  if (ready.ok()) {
    ready = Ask("Options", [this](const ResourcePlugin& plugin) {
      return OptionsOf(plugin) == options_ ? OkStatus()
                                           : Errorf(StatusCode::kFailedPrecondition,
                                                    "cannot configure the plugin of {} while it "
                                                    "runs: its plugin options changed; restart it",
                                                    resource_);
    });
  }
  serving_ = former;
  return ready;
}

StatusOr<PluginDriver::Trial> PluginDriver::Try(ResourcePlugin& next) {
  QRM_RETURN_IF_ERROR(Prepare(next));
  ResourcePlugin* const former = std::exchange(serving_, &next);
  Trial trial;
  StatusOr<Grants> changed = ChangedGrants();
  StatusOr<std::vector<Pool>> pools = Pools();
  serving_ = former;
  QRM_ASSIGN_OR_RETURN(trial.changed, std::move(changed));
  QRM_ASSIGN_OR_RETURN(trial.pools, std::move(pools));
  return trial;
}

void PluginDriver::Replace(std::unique_ptr<ResourcePlugin> next) {
  next->changes().Connect([&first = plugin_] { first.NotifyChanged(); });
  const Status retired = Ask("Retire", [](ResourcePlugin& former) {
    former.Retire();
    return OkStatus();
  });
  if (!retired.ok()) {
    log::Warning("cannot retire the replaced plugin; it may continue in the background",
                 {{"resource", resource_}, {"error", MessageOf(retired)}});
  }
  serving_ = next.get();
  replacement_ = std::move(next);
  Begin();
  if (const Status kept = Commit({}); !kept.ok()) {
    log::Warning(
        "cannot write the plugin's saved state; it stays in memory until the disk accepts it",
        {{"resource", resource_}, {"error", MessageOf(kept)}});
  }
  plugin_.NotifyChanged();
}

/// Adds the plugin's saved state when it changed; an empty change does not touch the disk.
Status PluginDriver::Commit(StateChange change) {
  QRM_ASSIGN_OR_RETURN(std::string saved, Get("SaveState", &ResourcePlugin::SaveState));
  if (saved != saved_.value_or("")) {
    change.saved = saved;
  }
  change.granted.insert(unsaved_.begin(), unsaved_.end());  // grants of the change take precedence
  const bool nothing = change.granted.empty() && change.removed.empty() &&
                       !change.removed_pod.has_value() && !change.saved.has_value();
  if (nothing) {
    return OkStatus();
  }
  change.manager_teaches = is_taught_;
  Status kept = state_->Commit(change);
  if (kept.code() == StatusCode::kDataLoss) {
    kept = state_->BeginAnew(Everything(std::move(change), saved));
  }
  if (!kept.ok()) {
    return Errorf(StatusCode::kUnavailable, "cannot write the decision of the plugin of {}: {}",
                  resource_, MessageOf(kept));
  }
  saved_ = std::move(saved);
  unsaved_.clear();
  return OkStatus();
}

/// The whole state with `change`; its removals are already applied to grants_.
StateChange PluginDriver::Everything(StateChange change, const std::string& saved) const {
  StateChange everything{.granted = std::move(change.granted), .saved = saved};
  everything.granted.insert(grants_.begin(),
                            grants_.end());  // grants of the change take precedence
  return everything;
}

}  // namespace qrm::sdk
