// Waits for specs before it posts a job; the jobs run one after another on the state loop.
#include "manager/pods/pod_placer.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "manager/admission/admitter.h"
#include "manager/admission/releaser.h"
#include "manager/demand/demand_source.h"
#include "manager/drivers/driver_choice.h"
#include "manager/pods/applied_values.h"
#include "manager/reconcile/reconciler.h"
#include "manager/registry/plugins.h"
#include "manager/runtime/live_containers.h"
#include "manager/state/allocation_check.h"
#include "manager/state/state_loop.h"
#include "topology/machine.h"

namespace qrm::manager {

using checkpoint::ContainerRecord;

namespace {

/// False for rejections that more room would not have prevented. Foreign plugins may report a lack
/// of room by any other code.
bool MayLackRoom(const Status& refusal) {
  switch (refusal.code()) {
    case StatusCode::kResourceExhausted:
    case StatusCode::kFailedPrecondition:
    case StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

bool HasDriver(const checkpoint::NodeState& state, const ContainerKey& key) {
  return state.Find(key) != nullptr && !DriverOf(state.Find(key)->allocations).empty();
}

}  // namespace

PodPlacer::PodPlacer(const NodeParts& parts, std::chrono::milliseconds admission_deadline,
                     std::chrono::milliseconds adoption_grace, ResizeRetries retries)
    : parts_(parts),
      admission_deadline_(admission_deadline),
      unplaced_(
          parts, [this](const placement::ContainerDemand& demand) { return AdmitRunning(demand); },
          admission_deadline, adoption_grace),
      resizes_(
          parts,
          [this](const placement::ContainerDemand& demand, Resizes::Attempt attempt) {
            return PlaceResized(demand, attempt);
          },
          retries) {}

void PodPlacer::Create(RuntimePod pod, RuntimeContainer container,
                       RuntimeEvents::AdjustmentReply reply) {
  const auto creation = std::make_shared<const Creation>(Creation{
      std::move(pod), std::move(container), DeadlineAfter(admission_deadline_), std::move(reply)});
  if (parts_.stands_aside()) {
    parts_.state.Post([this, creation] {
      unplaced_.Add(creation->pod, creation->container,
                    "qrmd stands aside for kubelet (qrmctl status)");
      creation->reply(ContainerAdjustment{});
    });
    return;
  }
  parts_.source.Find(
      creation->pod, creation->container, creation->deadline,
      [this, creation](StatusOr<placement::ContainerDemand> found) {
        parts_.state.Post([this, creation, found = std::move(found)] { Answer(*creation, found); });
      });
}

void PodPlacer::Start(const ContainerKey& key, std::function<void(const Status&)> done) {
  const auto state = parts_.state.Load();
  const NodeCpusets node = CpusetsOf(*state);
  const bool is_concerned = HasDriver(*state, key) || parts_.writes_cpusets;
  if (!is_concerned || (!OwnsCpusAlone(key) && !MayRunOnOwned(key, node))) {
    done(OkStatus());
    return;
  }
  parts_.state.Post([this, key, done = std::move(done)] { done(HandOver(key)); });
}

void PodPlacer::CompareRequests(const ContainerKey& key) {
  parts_.state.Post([this, key] {
    if (parts_.state.Load()->Find(key) == nullptr) {
      unplaced_.Try({key});
    } else {
      resizes_.Compare(key);
    }
  });
}

void PodPlacer::Adopt(std::vector<RuntimePod> pods, std::vector<RuntimeContainer> containers) {
  parts_.state.Post([this, pods = std::move(pods), containers = std::move(containers)] {
    PlaceAll(pods, containers);
  });
}

void PodPlacer::AdoptObserved(std::vector<PodAndContainer> fresh) {
  parts_.state.Post([this, fresh = std::move(fresh)] { PlaceFresh(fresh); });
}

void PodPlacer::Forget(const ContainerKey& key) {
  parts_.state.Post([this, key] {
    if (!parts_.live.Find(key).has_value()) {
      unplaced_.Erase(key);
    }
  });
}

void PodPlacer::RemoveGone() {
  parts_.state.Post([this] { RemoveGonePods(); });
}

void PodPlacer::RemoveGone(const std::string& uid) {
  parts_.state.Post([this, uid] {
    if (!all_removed_) {
      RemoveGonePods();
    } else if (!parts_.live.HasPod(uid) && parts_.state.Load()->FindPod(uid) != nullptr) {
      RemovePods({uid});
    }
  });
}

void PodPlacer::RetryUnplaced() {
  parts_.state.Post([this] {
    unplaced_.TryAll();
    resizes_.ForgetCompared();
    CompareAllRequests();
  });
}

void PodPlacer::OnPluginRegistered(const std::string& resource) {
  parts_.state.Post([this, resource] {
    if (parts_.releaser.RemovalIsDue()) {
      RemoveGonePods();
    }
    unplaced_.AddIncomplete(resource);
  });
  RetryUnplaced();
}

void PodPlacer::OnReconciled() {
  if (parts_.releaser.RemovalIsDue()) {
    RemoveGonePods();
  }
  unplaced_.LeaveOwnedCpus();
}

// Only then: the first plugin's allocations after a start would bind the others to its NUMA nodes.
void PodPlacer::CompareAllRequests() {
  if (parts_.live.synchronized() && !unplaced_.AwaitsPlugins()) {
    unplaced_.TryDue();
    if (const auto state = parts_.state.Load(); std::exchange(retried_, state) != state) {
      unplaced_.Try(unplaced_.Keys());  // a resize or an init container's end may have made room
    }
    resizes_.CompareAll();
  }
}

void PodPlacer::OnDiskReturned() {
  ReleaseUnreleased();
  if (parts_.live.synchronized()) {
    RemoveGonePods();
    unplaced_.TryAll();
  }
}

void PodPlacer::Answer(const Creation& creation,
                       const StatusOr<placement::ContainerDemand>& found) {
  StatusOr<ContainerAdjustment> adjustment = Decide(creation, found);
  if (!adjustment.ok()) {
    const auto& [pod, container, deadline, reply] = creation;
    parts_.live.Remove(KeyOf(pod, container), container.id);
    const std::string why = MessageOf(adjustment.status());
    if (const auto before = refusals_.Take(why, std::chrono::steady_clock::now());
        before.has_value()) {
      log::Warning("container rejected", {{"error", why}, {"equal_ones_before", *before}});
    }
  }
  creation.reply(std::move(adjustment));
}

StatusOr<ContainerAdjustment> PodPlacer::Decide(const Creation& creation,
                                                const StatusOr<placement::ContainerDemand>& found) {
  const auto& [pod, container, deadline, reply] = creation;
  if (found.status().code() == StatusCode::kInvalidArgument) {
    log::Warning("container skipped", {{"error", MessageOf(found.status())}});
    return ContainerAdjustment{};
  }
  QRM_RETURN_IF_ERROR(found.status());
  if (!parts_.live.HasPod(pod.uid)) {  // its record would never be removed
    return Errorf(StatusCode::kAborted,
                  "cannot admit container {} of pod {}/{}: the pod was removed while qrmd read its "
                  "spec; create it again",
                  container.name, pod.pod_namespace, pod.name);
  }
  const placement::ContainerDemand demand = WithoutPlaced(*found, parts_.live);
  ReleaseEarlierContainers(*found, Admitter::Moment::kAtCreation);
  const bool is_made_anew = parts_.state.Load()->Find(demand.key()) != nullptr;
  QRM_ASSIGN_OR_RETURN(const RunOptions options,
                       Admit(demand, Admitter::Moment::kAtCreation, deadline));
  if (is_made_anew) {
    resizes_.Compare(demand.key());  // a resize beyond its record may have been rejected
  }
  if (parts_.state.Load()->Find(demand.key()) == nullptr) {
    RuntimeContainer made = container;
    if (const auto cpus = options.properties.find(std::string(kCpusetCpus));
        cpus != options.properties.end()) {
      made.resources.cpuset_cpus = cpus->second;
    }
    unplaced_.Add(pod, made, parts_.admitter.WhySkipped(demand));
  } else if (!options.unanswered.empty()) {
    unplaced_.AskAgain(demand.key(), options.unanswered);
  }
  if (OwnsCpusAlone(demand.key())) {
    parts_.reconciler.TriggerChanges();  // other containers have to leave these CPUs
    unplaced_.LeaveOwnedCpus();
    if (parts_.writes_cpusets) {
      // Before the runtime creates the container, whose cgroup has its CPUs from then on.
      const auto state = parts_.state.Load();
      QRM_RETURN_IF_ERROR(Annotate(UnlessReadOnly(ClearCpusOf(demand.key(), CpusetsOf(*state))),
                                   "cannot create " + NameOf(demand)));
    }
  }
  if (demand.type == ContainerType::kMain) {
    parts_.state.Post([this, uid = pod.uid] { ReleaseInitContainers(uid); });
  }
  return ToAdjustment(options);
}

NodeCpusets PodPlacer::CpusetsOf(const checkpoint::NodeState& state) {
  return {state, parts_.live, parts_.machine, parts_.read_cpuset, updates_};
}

Status PodPlacer::HandOver(const ContainerKey& key) {
  const auto state = parts_.state.Load();
  const NodeCpusets node = CpusetsOf(*state);
  Status handed_over = ClearCpusOf(key, node);
  if (handed_over.ok()) {
    handed_over = LeaveOwned(key, node);
  }
  return HasDriver(*state, key) ? handed_over : UnlessReadOnly(std::move(handed_over));
}

// Unpinned containers may run on all CPUs.
Status PodPlacer::ClearCpusOf(const ContainerKey& key, const NodeCpusets& node) const {
  QRM_RETURN_IF_ERROR(MakeRoomFor(key, node));
  for (const ContainerKey& unplaced : unplaced_.Keys()) {
    QRM_RETURN_IF_ERROR(LeaveOwned(unplaced, node));
  }
  return OkStatus();
}

// With read-only cgroups, other containers leave the CPUs in the reconcile that follows.
Status PodPlacer::UnlessReadOnly(Status handed_over) {
  if (handed_over.code() != StatusCode::kPermissionDenied) {
    return handed_over;
  }
  if (!std::exchange(read_only_told_, true)) {
    log::Warning(
        "cannot write to cgroups: containers leave the exclusive CPUs of others only after those "
        "have started; mount cgroup-root writable, or set write-cpusets: false",
        {{"error", MessageOf(handed_over)}});
  }
  return OkStatus();
}

StatusOr<RunOptions> PodPlacer::Admit(const placement::ContainerDemand& demand,
                                      Admitter::Moment moment, Deadline deadline) {
  parts_.releaser.FinishRemovalOf(demand.pod.uid);
  StatusOr<RunOptions> options = parts_.admitter.Admit(demand, moment, deadline);
  if (options.ok() || !MayLackRoom(options.status())) {
    return options;
  }
  const bool any_ended = parts_.live.RemoveAllEnded();
  if (any_ended) {
    log::Info("releasing terminated pods to make room", {{"to", demand.pod.name}});
    RemoveGonePods();
  }
  const bool any_untold = parts_.releaser.FinishRemovals();
  return any_ended || any_untold ? parts_.admitter.Admit(demand, moment, deadline) : options;
}

// A retry does not wait for plugins that have not received removals: another retry follows these.
Status PodPlacer::PlaceResized(const placement::ContainerDemand& demand, Resizes::Attempt attempt) {
  const Deadline deadline = DeadlineAfter(admission_deadline_);
  const auto moment = attempt == Resizes::Attempt::kReview ? AdmissionMoment::kForReview
                                                           : AdmissionMoment::kForResize;
  QRM_RETURN_IF_ERROR(attempt == Resizes::Attempt::kFirst
                          ? Admit(demand, moment, deadline).status()
                          : parts_.admitter.Admit(demand, moment, deadline).status());
  const auto state = parts_.state.Load();
  const bool has_driver = HasDriver(*state, demand.key());
  if (!OwnsCpusAlone(demand.key()) || !(parts_.writes_cpusets || has_driver)) {
    return OkStatus();
  }
  // The run that gives it its CPUs may have asked before where the containers that have them go.
  Status cleared = ClearCpusOf(demand.key(), CpusetsOf(*state));
  return has_driver ? cleared : UnlessReadOnly(std::move(cleared));
}

StatusOr<std::vector<std::string>> PodPlacer::AdmitRunning(
    const placement::ContainerDemand& demand) {
  constexpr auto kMoment = Admitter::Moment::kAfterTheFact;
  ReleaseEarlierContainers(demand, kMoment);
  QRM_ASSIGN_OR_RETURN(RunOptions options, Admit(WithoutPlaced(demand, parts_.live), kMoment,
                                                 DeadlineAfter(admission_deadline_)));
  if (demand.type == ContainerType::kMain) {
    ReleaseInitContainers(demand.pod.uid);
  }
  return std::move(options.unanswered);
}

// Init containers that were placed without their pod's spec are recorded as main containers. They
// are released, since changing their type to INIT would not change what their plugins know.
void PodPlacer::ReleaseEarlierContainers(const placement::ContainerDemand& demand,
                                         AdmissionMoment moment) {
  const auto state = parts_.state.Load();
  const checkpoint::PodRecord* pod = state->FindPod(demand.pod.uid);
  if (pod == nullptr || pod->containers.contains(demand.container) || IsRemade(demand)) {
    return;
  }
  std::vector<ContainerKey> ended;
  for (const auto& [name, record] : pod->containers) {
    if (record->request_source == kEstimate && HasEndedBefore(demand, name, moment)) {
      ended.push_back({demand.pod.uid, name});
    }
  }
  Release(ended);
}

// In a new sandbox, init containers run again before those that come after them.
bool PodPlacer::IsRemade(const placement::ContainerDemand& demand) const {
  return demand.source == kEstimate &&
         parts_.live.Find(demand.key()).value_or(LiveContainer()).attempt > 0;
}

// The spec shows which containers are init containers. Without a spec, their end shows it: when the
// next container is created for the first time, or found, the earlier ones have run to their end
// and were not recreated. If the end itself was missed, only their absence shows it.
bool PodPlacer::HasEndedBefore(const placement::ContainerDemand& demand, const std::string& other,
                               AdmissionMoment moment) const {
  const ContainerKey key{demand.pod.uid, other};
  if (parts_.live.Find(key).has_value()) {
    return false;
  }
  if (demand.source != kEstimate) {
    const auto end = demand.others.begin() + static_cast<std::ptrdiff_t>(demand.place);
    return std::any_of(demand.others.begin(), end, [&](const placement::ContainerDemand& before) {
      return before.container == other && before.type == ContainerType::kInit;
    });
  }
  return moment == Admitter::Moment::kAtCreation
             ? parts_.live.EndedOnce(demand.pod.uid).contains(other)
             : !parts_.live.HasEndedAgain(key);
}

// Init containers have ended when the pod's main container is created, or found. Their allocations
// are released then, as by kubelet's managers. If they run again, they are placed again.
void PodPlacer::ReleaseInitContainers(const std::string& pod_uid) {
  const auto state = parts_.state.Load();
  const checkpoint::PodRecord* pod = state->FindPod(pod_uid);
  if (pod == nullptr) {
    return;
  }
  std::vector<ContainerKey> ended;
  for (const auto& [name, record] : pod->containers) {
    if (record->type == ContainerType::kInit && !parts_.live.Find({pod_uid, name}).has_value()) {
      ended.push_back({pod_uid, name});
    }
  }
  Release(ended);
}

void PodPlacer::Release(const std::vector<ContainerKey>& ended) {
  if (const Status removed = parts_.releaser.RemoveContainers(ended); !removed.ok()) {
    log::Warning("cannot release init containers", {{"error", MessageOf(removed)}});
    unreleased_.insert(ended.begin(), ended.end());
  }
}

// One that runs again meanwhile keeps what it has.
void PodPlacer::ReleaseUnreleased() {
  const auto state = parts_.state.Load();
  std::set<ContainerKey> ended = std::exchange(unreleased_, {});
  std::erase_if(ended, [&](const ContainerKey& key) {
    return state->Find(key) == nullptr || parts_.live.Find(key).has_value();
  });
  if (!ended.empty()) {
    Release({ended.begin(), ended.end()});
  }
}

void PodPlacer::PlaceAll(const std::vector<RuntimePod>& pods,
                         const std::vector<RuntimeContainer>& containers) {
  std::unordered_map<std::string_view, const RuntimePod*> pod_by_id;
  for (const RuntimePod& pod : pods) {
    pod_by_id.emplace(pod.id, &pod);
  }
  std::vector<PodAndContainer> found;
  found.reserve(containers.size());
  for (const RuntimeContainer& container : containers) {
    found.emplace_back(*pod_by_id.at(container.pod_id), container);
  }
  if (NoteFound(found).no_record && !containers.empty()) {
    log::Warning("the checkpoint is empty: placing running containers by their current CPUs",
                 {{"containers", containers.size()}});
  }
  for (const PluginInfo& plugin : parts_.plugins.List()) {
    if (plugin.live) {
      unplaced_.AddIncomplete(plugin.resource);  // it may have registered before the runtime did
    }
  }
  unplaced_.TryAll();
  parts_.reconciler.Trigger();
}

void PodPlacer::PlaceFresh(const std::vector<PodAndContainer>& fresh) {
  Found found = NoteFound(fresh);
  unplaced_.Try(std::move(found.unknown));
  if (found.incomplete) {
    parts_.reconciler.Trigger();
  }
}

// The containers may have been created while events were lost.
PodPlacer::Found PodPlacer::NoteFound(const std::vector<PodAndContainer>& containers) {
  RemoveGonePods();
  unplaced_.EraseEnded();
  const auto state = parts_.state.Load();
  const CpuSet offline = parts_.machine.OfflineNow();
  checkpoint::Change change;
  Found found{.no_record = state->container_count() == 0};
  for (const auto& [pod, container] : containers) {
    const ContainerKey key = KeyOf(pod, container);
    const ContainerRecord* const record = state->Find(key);
    if (record == nullptr) {
      unplaced_.Add(pod, container);
      found.unknown.push_back(key);
      continue;
    }
    if (record->type == ContainerType::kMain) {
      ReleaseInitContainers(key.pod_uid);
    }
    found.incomplete = NoteFoundValues(*state, key, container, offline, change) || found.incomplete;
  }
  if (!change.Empty()) {
    if (const Status saved = parts_.state.Remember(change); !saved.ok()) {
      log::Warning("cannot record which values containers have", {{"error", MessageOf(saved)}});
    }
  }
  return found;
}

void PodPlacer::RemoveGonePods() {
  std::vector<std::string> gone;
  parts_.state.Load()->ForEachPod([&](const checkpoint::PodRecord& pod) {
    if (!parts_.live.HasPod(pod.meta.uid)) {
      gone.push_back(pod.meta.uid);
    }
  });
  if (!gone.empty()) {
    RemovePods(gone);
  }
}

void PodPlacer::RemovePods(const std::vector<std::string>& gone) {
  const Status removed = parts_.releaser.RemovePods(gone, [this] {
    unplaced_.TryAll();  // there may be room for them now
    resizes_.RetryPending();
    parts_.reconciler.TriggerChangesSoon();
  });
  all_removed_ = removed.ok();
  if (!removed.ok()) {
    log::Warning("cannot remove pods: trying again at the next removal or synchronization",
                 {{"error", MessageOf(removed)}});
  }
}

bool PodPlacer::OwnsCpusAlone(const ContainerKey& key) const {
  const auto state = parts_.state.Load();
  const ContainerRecord* record = state->Find(key);
  return record != nullptr && !OwnedCpus(record->allocations).Empty();
}

}  // namespace qrm::manager
