// Sends removals to plugins, and records those that could not be sent.
#include "manager/admission/releaser.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "api/base/clock.h"
#include "api/base/log.h"
#include "manager/admission/request_rules.h"
#include "manager/drivers/driver_choice.h"
#include "manager/registry/plugins.h"
#include "manager/state/state_loop.h"
#include "plugins/placement/recorded_grants.h"
#include "plugins/placement/requests.h"
#include "plugins/sdk/calls/compute_calls.h"
#include "plugins/sdk/compute_driver.h"

namespace qrm::manager {

// One batch of removals: a plugin that failed once is not called again.
struct Releaser::Round {
  checkpoint::Change change;
  std::set<std::string> failed;
};

Releaser::Releaser(StateLoop& state, Plugins& plugins, placement::AdmissionOptions options,
                   checkpoint::NoteEvent note)
    : state_(state),
      plugins_(plugins),
      options_(std::move(options)),
      note_(std::move(note)),
      drivers_(state, plugins, options_.release_deadline) {}

Deadline Releaser::CallDeadline() const {
  return DeadlineAfter(options_.release_deadline);
}

void Releaser::RollBack(const std::string& pod_uid,
                        const std::map<std::string, std::vector<std::string>>& resources) {
  if (resources.empty()) {
    return;
  }
  const auto state = state_.Load();
  const checkpoint::PodRecord* pod = state->FindPod(pod_uid);
  std::set<std::string> of_pod;
  for (const auto& [container, allocated] : resources) {
    of_pod.insert(allocated.begin(), allocated.end());
    if (pod != nullptr) {
      RollBackContainer(*pod, container, allocated);
    }
  }
  if (pod != nullptr) {
    return;
  }
  Round round;
  RemoveFromPlugins(pod_uid, {of_pod.begin(), of_pod.end()}, round);
  if (round.change.Empty()) {
    return;
  }
  if (const Status saved = state_.Remember(round.change); !saved.ok()) {
    log::Warning("cannot record a pending removal after a failed admission",
                 {{"pod", pod_uid}, {"error", MessageOf(saved)}});
  }
}

void Releaser::RollBackContainer(const checkpoint::PodRecord& pod, const std::string& container,
                                 const std::vector<std::string>& allocated) {
  const auto record = pod.containers.find(container);
  std::vector<std::string> to_release;
  for (const std::string& resource : allocated) {
    if (record != pod.containers.end() && placement::Holds(*record->second, resource)) {
      Reteach(pod, container, resource);
    } else {
      to_release.push_back(resource);
    }
  }
  ReleaseContainer({pod.meta.uid, container}, to_release);
}

// A plugin that does not support Restore keeps the larger allocation; the next reconcile records
// it.
void Releaser::Reteach(const checkpoint::PodRecord& pod, const std::string& container,
                       const std::string& resource) {
  if (!plugins_.Find(resource).has_value()) {
    return;
  }
  calls::Restore::Request taught;
  taught.grants.emplace(
      ContainerKey{pod.meta.uid, container},
      RecordedGrant(pod.meta, container, *pod.containers.at(container), resource, options_));
  const Status done = plugins_.Tell<calls::Restore>({resource}, taught, CallDeadline())[resource];
  if (!done.ok() && done.code() != StatusCode::kUnimplemented) {
    log::Warning("plugin did not restore the allocation before a failed admission",
                 {{"resource", resource}, {"error", MessageOf(done)}});
  }
}

void Releaser::ReleaseContainer(const ContainerKey& key,
                                const std::vector<std::string>& resources) {
  // If a release fails, the reconciler finds and releases the leftover allocation.
  std::vector<std::string> plugins;
  for (const std::string& resource : resources) {
    if (sdk::IsDriverResource(resource)) {
      drivers_.Tell({.resource = resource, .key = key});
    } else {
      plugins.push_back(resource);
    }
  }
  for (const auto& [resource, released] :
       plugins_.Tell<calls::ReleaseContainer>(plugins, key, CallDeadline())) {
    if (!released.ok() && released.code() != StatusCode::kUnimplemented) {
      log::Warning("plugin did not release a container",
                   {{"resource", resource}, {"error", MessageOf(released)}});
    }
  }
}

Status Releaser::RemoveContainers(const std::vector<ContainerKey>& keys) {
  const auto state = state_.Load();
  checkpoint::Change change;
  for (const ContainerKey& key : keys) {
    const checkpoint::ContainerRecord* record = state->Find(key);
    if (record == nullptr || !EndDriverOf(key, *record)) {
      continue;
    }
    ReleaseContainer(key, ServedOf(PluginsOf(*record)));
    change.remove_containers.push_back(key);
  }
  return change.Empty() ? OkStatus()
                        : Annotate(state_.Commit(change), "cannot forget ended containers");
}

bool Releaser::EndDriverOf(const ContainerKey& key, const checkpoint::ContainerRecord& record) {
  const std::string driver = DriverOf(record.allocations);
  return driver.empty() ||
         drivers_.Tell({.resource = driver, .key = key, .container_id = record.applied_to});
}

// Drivers first: their CPUs stay allocated until the driver has confirmed the removal.
Status Releaser::RemovePods(const std::vector<std::string>& uids, std::function<void()> done) {
  const auto state = state_.Load();
  std::vector<std::string> now;
  for (const std::string& uid : uids) {
    const checkpoint::PodRecord* pod = state->FindPod(uid);
    auto removals = pod == nullptr ? std::vector<sdk::ComputeRemoval>() : drivers_.Of(*pod);
    if (removals.empty()) {
      now.push_back(uid);
      continue;
    }
    drivers_.Start(std::move(removals), [this, uid, done] {
      if (const Status forgotten = ForgetPods({uid}, done); !forgotten.ok()) {
        log::Warning("pod of a compute driver not removed; retrying with the next removal",
                     {{"pod", uid}, {"error", MessageOf(forgotten)}});
      }
    });
  }
  return now.empty() ? OkStatus() : ForgetPods(now, std::move(done));
}

Status Releaser::ForgetPods(const std::vector<std::string>& uids, std::function<void()> done) {
  const auto state = state_.Load();
  Round round;
  const bool telling = !untold_.empty();
  for (const std::string& uid : uids) {
    if (const checkpoint::PodRecord* pod = state->FindPod(uid); pod != nullptr) {
      std::set<std::string> names;
      for (const auto& [container, record] : pod->containers) {
        names.merge(PluginsOf(*record));
      }
      std::vector<std::string> plugins = ServedOf(names);
      const auto processes = std::stable_partition(
          plugins.begin(), plugins.end(), [this](const auto& name) { return IsBuiltIn(name); });
      if (processes != plugins.end()) {
        untold_.push_back({uid, {processes, plugins.end()}});
      }
      RemoveFromPlugins(uid, {plugins.begin(), processes}, round);
      round.change.remove_pods.push_back(uid);
      note_({.type = "removal",
             .message = "its allocations are released",
             .key = {.pod_uid = uid, .container = {}},
             .pod_namespace = pod->meta.pod_namespace,
             .pod_name = pod->meta.name});
    }
  }
  Status forgotten = round.change.Empty()
                         ? OkStatus()
                         : Annotate(state_.Remember(round.change), "cannot forget removed pods");
  when_told_.push_back(std::move(done));
  if (!telling) {
    TellNext();
  }
  return forgotten;
}

bool Releaser::IsBuiltIn(const std::string& plugin) const {
  const std::optional<PluginInfo> info = plugins_.Find(plugin);
  return info.has_value() && info->registered_by == RegisteredBy::kBuiltIn;
}

void Releaser::TellNext() {
  if (untold_.empty()) {
    EndRemovals();
    return;
  }
  const Untold& next = untold_.front();
  plugins_.AskAll<calls::RemovePod>(
      next.plugins, next.uid, CallDeadline(),
      [this, &state = state_, round = round_](const ByPlugin<calls::Nothing>& answers) {
        std::map<std::string, Status> results;
        for (const auto& [plugin, answer] : answers) {
          results.emplace(plugin, answer.status());
        }
        state.Post([this, round, results = std::move(results)] { OnTold(round, results); });
      });
}

void Releaser::OnTold(uint64_t round, const std::map<std::string, Status>& answers) {
  if (round != round_) {
    return;
  }
  for (const auto& [plugin, told] : answers) {
    if (!told.ok()) {
      log::Warning(
          "plugin not notified of removed pods; retrying when it is running",
          {{"resource", plugin}, {"pod", untold_.front().uid}, {"error", MessageOf(told)}});
      PutOff(plugin);
    }
  }
  untold_.erase(untold_.begin());
  TellNext();
}

// A plugin that failed is not called again: Replay sends it all removals when it is running again.
void Releaser::PutOff(const std::string& plugin) {
  checkpoint::Change change;
  for (Untold& untold : untold_) {
    if (std::erase(untold.plugins, plugin) > 0) {
      change.add_pending_removals.emplace_back(untold.uid, plugin);
    }
  }
  if (const Status saved = state_.Remember(change); !saved.ok()) {
    log::Warning("cannot record pending removals of a plugin",
                 {{"resource", plugin}, {"error", MessageOf(saved)}});
  }
}

bool Releaser::FinishRemovals() {
  const bool any_taken = drivers_.Finish();
  if (untold_.empty()) {
    return any_taken;
  }
  Round round;
  for (const Untold& untold : std::exchange(untold_, {})) {
    RemoveFromPlugins(untold.uid, untold.plugins, round);
  }
  if (const Status saved = state_.Remember(round.change); !saved.ok()) {
    log::Warning("cannot record pending removals", {{"error", MessageOf(saved)}});
  }
  EndRemovals();
  return true;
}

void Releaser::FinishRemovalOf(const std::string& uid) {
  if (drivers_.IsTelling(uid) ||
      std::any_of(untold_.begin(), untold_.end(),
                  [&](const Untold& untold) { return untold.uid == uid; })) {
    FinishRemovals();
  }
  for (const auto& [resource, told] : replaying_) {
    if (told == uid) {
      const Status again = TellRemoved(resource, uid);  // answered after the first call has ended
      if (!again.ok()) {
        log::Warning("plugin may release new allocations of a returned pod",
                     {{"resource", resource}, {"pod", uid}, {"error", MessageOf(again)}});
      }
    }
  }
}

void Releaser::EndRemovals() {
  ++round_;
  for (const auto& done : std::exchange(when_told_, {})) {
    done();
  }
}

void Releaser::Replay(const std::string& resource, std::function<void()> done) {
  drivers_.OnReturn(resource);
  std::vector<std::string> uids;
  for (const auto& [uid, resources] : state_.Load()->pending_removals()) {
    if (resources.contains(resource)) {
      uids.push_back(uid);
    }
  }
  if (uids.empty() || !replaying_.emplace(resource, std::string()).second) {
    return;
  }
  std::reverse(uids.begin(), uids.end());
  ReplayNext(resource, std::move(uids), std::move(done));
}

// Without pods that were admitted again meanwhile.
void Releaser::ReplayNext(const std::string& resource, std::vector<std::string> uids,
                          std::function<void()> done) {
  const auto state = state_.Load();
  std::vector<std::string> back;
  while (!uids.empty()) {
    const auto pending = state->pending_removals().find(uids.back());
    if (pending != state->pending_removals().end() && pending->second.contains(resource)) {
      if (state->FindPod(uids.back()) == nullptr) {
        break;
      }
      back.push_back(uids.back());
    }
    uids.pop_back();
  }
  ForgetPending(resource, back);
  if (uids.empty()) {
    EndReplay(resource, done);
    return;
  }
  const std::string uid = std::move(uids.back());
  uids.pop_back();
  replaying_[resource] = uid;
  const auto on_answer = [this, &state = state_, resource, uid, uids = std::move(uids),
                          done = std::move(done)](const StatusOr<calls::Nothing>& answer) {
    state.Post([this, resource, uid, told = answer.status(), uids, done] {
      OnReplayed(resource, uid, told, uids, done);
    });
  };
  if (sdk::IsDriverResource(resource)) {
    const sdk::ComputeRemoval all{.resource = resource, .key = {uid, ""}};
    plugins_.Ask<calls::ComputeRemove>(resource, all, CallDeadline(), on_answer);
  } else {
    plugins_.Ask<calls::RemovePod>(resource, uid, CallDeadline(), on_answer);
  }
}

void Releaser::OnReplayed(const std::string& resource, const std::string& uid, const Status& told,
                          std::vector<std::string> uids, std::function<void()> done) {
  if (told.ok()) {
    ForgetPending(resource, {uid});
    ReplayNext(resource, std::move(uids), std::move(done));
    return;
  }
  log::Warning("pending removal not sent to plugin",
               {{"resource", resource}, {"pod", uid}, {"error", MessageOf(told)}});
  EndReplay(resource, done);
}

void Releaser::EndReplay(const std::string& resource, const std::function<void()>& done) {
  replaying_.erase(resource);
  done();
}

void Releaser::ForgetPending(const std::string& resource, const std::vector<std::string>& uids) {
  checkpoint::Change change;
  for (const std::string& uid : uids) {
    change.done_pending_removals.emplace_back(uid, resource);
  }
  if (change.Empty()) {
    return;
  }
  if (const Status saved = state_.Remember(change); !saved.ok()) {
    log::Warning("cannot delete pending removals that were sent",
                 {{"resource", resource}, {"pods", uids.size()}, {"error", MessageOf(saved)}});
  }
}

Status Releaser::TellRemoved(const std::string& resource, const std::string& uid) {
  if (!sdk::IsDriverResource(resource)) {
    return plugins_.Tell<calls::RemovePod>({resource}, uid, CallDeadline())[resource];
  }
  const sdk::ComputeRemoval all{.resource = resource, .key = {uid, ""}};
  return plugins_.AskForEach<calls::ComputeRemove>({all}, CallDeadline()).front().status();
}

void Releaser::RemoveFromPlugins(const std::string& uid, const std::vector<std::string>& resources,
                                 Round& round) {
  std::vector<std::string> reachable;
  for (const std::string& resource : resources) {
    if (sdk::IsDriverResource(resource)) {
      if (!TellRemoved(resource, uid).ok()) {
        round.change.add_pending_removals.emplace_back(uid, resource);
      }
    } else if (round.failed.contains(resource)) {
      round.change.add_pending_removals.emplace_back(uid, resource);
    } else {
      reachable.push_back(resource);
    }
  }
  for (const auto& [resource, removed] :
       plugins_.Tell<calls::RemovePod>(reachable, uid, CallDeadline())) {
    if (!removed.ok()) {
      log::Warning("plugin not notified of a removed pod; retrying when it is running",
                   {{"resource", resource}, {"pod", uid}, {"error", MessageOf(removed)}});
      round.failed.insert(resource);
      round.change.add_pending_removals.emplace_back(uid, resource);
    }
  }
}

std::set<std::string> Releaser::PluginsOf(const checkpoint::ContainerRecord& record) const {
  std::set<std::string> names;
  for (const auto& [resource, allocation] : record.allocations) {
    names.insert(record.PluginOf(resource));
  }
  for (const auto& [requested, amount] : record.requests) {
    names.insert(PluginNameOf(requested, options_));
  }
  return names;
}

std::vector<std::string> Releaser::ServedOf(const std::set<std::string>& names) const {
  std::vector<std::string> served;
  for (const std::string& name : names) {
    if (plugins_.Find(name).has_value() && !sdk::IsDriverResource(name)) {
      served.push_back(name);
    }
  }
  return served;
}

}  // namespace qrm::manager
