// Compares the plugins' answers, the records and the values that the runtime accepted.
#include "manager/reconcile/plan.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "manager/runtime/run_options.h"
#include "manager/state/allocation_check.h"
#include "plugins/placement/recorded_grants.h"

namespace qrm::manager {
namespace {

using calls::HeldAllocation;
using calls::HeldList;
using checkpoint::Change;
using checkpoint::ContainerRecord;
using checkpoint::NodeState;
using checkpoint::Origin;
using checkpoint::PodRecord;

constexpr std::string_view kOomScoreAdj = "OomScoreAdj";

std::string NameOf(const PodRecord& pod, const std::string& container) {
  return fmt::format("container {} of pod {}/{}", container, pod.meta.pod_namespace, pod.meta.name);
}

// Builds a ReconcilePlan from the plugins' answers, one after the other.
class ReconcilePlanner {
 public:
  ReconcilePlanner(const NodeState& asked, const NodeState& now, const AllocationsByPlugin& answers,
                   const CompareScope& scope)
      : asked_(asked), now_(now), answers_(answers), scope_(scope) {}

  /// If the answers are `whole`, a container that they do not name is missing.
  ReconcilePlan Plan(const Machine& machine, bool whole) {
    for (const auto& [plugin, answer] : answers_) {
      if (!answer.ok()) {
        plan_.problems.push_back(MessageOf(answer.status()));
        continue;
      }
      const auto limited = scope_.pods.find(plugin);
      const PodSet* const pods = limited == scope_.pods.end() ? nullptr : &limited->second;
      const calls::HeldAllocations held =
          pods == nullptr ? *answer : calls::HeldOf(**answer, *pods);
      for (auto one = held->begin(); one != held->end();) {
        const auto next = std::find_if(
            one, held->end(), [&](const HeldAllocation& other) { return other.key != one->key; });
        TakeContainer(plugin, {one, next});
        one = next;
      }
      if (whole) {
        FindMissing(plugin, *held, pods);
      }
    }
    for (auto& [key, record] : changed_) {
      plan_.change.put_containers.push_back(
          {now_.FindPod(key.pod_uid)->meta, key.container, std::move(record)});
    }
    RefuseBadOnes(machine);
    return std::move(plan_);
  }

 private:
  /// Compares the `allocations` that `plugin` has for one container.
  void TakeContainer(const std::string& plugin, std::span<const HeldAllocation> allocations) {
    const ContainerKey& key = allocations.front().key;
    const ContainerRecord* known = now_.Find(key);
    if (&now_ != &asked_ && known != asked_.Find(key)) {
      plan_.stale = true;
      return;
    }
    if (known == nullptr) {
      plan_.orphans[plugin].insert(key);
      return;
    }
    for (const auto& [container, resource, allocation] : allocations) {
      // A plugin's allocation of another plugin's resource never replaces that plugin's own answer.
      if (resource == plugin ||
          (!answers_.contains(resource) && !scope_.unasked.contains(resource))) {
        TakeAllocation(plugin, key, *known, resource, allocation);
      }
    }
  }

  void TakeAllocation(const std::string& plugin, const ContainerKey& key,
                      const ContainerRecord& known, const SharedText& resource,
                      const Shared<ResourceAllocation>& fresh) {
    const auto before = known.allocations.find(resource);
    if (IsEmptyCpuset(fresh) || (before != known.allocations.end() && fresh == before->second)) {
      return;
    }
    if (before == known.allocations.end() && IsForNewOnly(fresh)) {
      plan_.orphans[plugin].insert(key);  // the container runs without it
      return;
    }
    ResourceAllocation merged =
        before == known.allocations.end() ? *fresh : MergeAllocation(before->second, fresh);
    if (before != known.allocations.end() && merged == before->second) {
      return;
    }
    ContainerRecord& record = changed_.emplace(key, known).first->second;
    const auto origin = record.origins.Edit().try_emplace(resource, Origin{.plugin = plugin}).first;
    if (before != known.allocations.end()) {
      NoteAdmitted(before->second, merged, origin->second);
    }
    record.allocations[resource] = std::move(merged);
  }

  // Records the admitted amounts, so that they can be shown beside the current amounts.
  static void NoteAdmitted(const ResourceAllocation& before, const ResourceAllocation& now,
                           Origin& origin) {
    const bool same =
        before.quantity == now.quantity && before.amount_by_node == now.amount_by_node;
    if (!same && !origin.admitted.has_value()) {
      origin.admitted = {.quantity = before.quantity, .by_node = before.amount_by_node};
    }
  }

  // The answer, the pods and their containers are all in the order of the keys.
  void FindMissing(const std::string& plugin, const HeldList& answer, const PodSet* pods) {
    auto held = answer.begin();
    ForEachOf(pods, [&](const PodRecord& pod) {
      for (const auto& [name, record] : pod.containers) {
        const ContainerKey key{pod.meta.uid, name};
        held = std::find_if(held, answer.end(),
                            [&](const HeldAllocation& one) { return one.key >= key; });
        const bool is_there = held != answer.end() && held->key == key;
        if (!is_there && placement::Holds(*record, plugin) && asked_.Find(key) == record.get()) {
          plan_.missing[plugin].insert(key);
        }
      }
    });
  }

  void ForEachOf(const PodSet* pods, const std::function<void(const PodRecord&)>& visit) const {
    if (pods == nullptr) {
      now_.ForEachPod(visit);
      return;
    }
    for (const SharedText& uid : *pods) {
      if (const PodRecord* const pod = now_.FindPod(uid); pod != nullptr) {
        visit(*pod);
      }
    }
  }

  void RefuseBadOnes(const Machine& machine) {
    auto& puts = plan_.change.put_containers;
    if (puts.empty()) {
      return;
    }
    const NodeState next = now_.With(plan_.change);
    const std::vector<ExclusiveCpus> exclusive = FindExclusiveCpus(next);
    const auto refused = [&](Change::PutContainer& put) {
      const ContainerKey key{put.pod.uid, put.container};
      const AllocationByResource& before = now_.Find(key)->allocations;
      for (const auto& [resource, allocation] : put.record.allocations) {
        Status good = CheckProperty(allocation);
        if (good.ok()) {
          good = CheckAllocation(key, put.record.type, allocation, machine, exclusive);
        }
        // If a node shrank below its bound memory, containers that were bound before keep theirs.
        const auto held = before.find(resource);
        if (good.ok() &&
            (held == before.end() || held->second->amount_by_node != allocation->amount_by_node)) {
          good = CheckBoundMemory(key, put.record.type, allocation, machine, next);
        }
        if (!good.ok()) {
          plan_.problems.push_back(fmt::format("cannot change {} as the {} plugin wants: {}",
                                               NameOf(*now_.FindPod(key.pod_uid), put.container),
                                               resource, MessageOf(good)));
          plan_.refused.insert(key.pod_uid);
          return true;
        }
      }
      return false;
    };
    puts.erase(std::remove_if(puts.begin(), puts.end(), refused), puts.end());
  }

  const NodeState& asked_;
  const NodeState& now_;
  const AllocationsByPlugin& answers_;
  const CompareScope& scope_;
  std::map<ContainerKey, ContainerRecord> changed_;
  ReconcilePlan plan_;
};

bool GainsCpus(const StringMap& taken, const StringMap& properties) {
  const auto wanted = properties.find(std::string(kCpusetCpus));
  const auto applied = taken.find(std::string(kCpusetCpus));
  if (wanted == properties.end() || applied == taken.end()) {
    return false;  // a container that was never pinned gives CPUs up
  }
  const auto now = CpuSet::Parse(applied->second);
  const auto next = CpuSet::Parse(wanted->second);
  return now.ok() && next.ok() && !next->IsSubsetOf(*now);
}

/// False when the container has taken no CPUs, or gets other CPUs anyway.
bool AddCpusAgain(const ContainerRecord& record, const std::string& id, StringMap& properties) {
  const StringMap& taken = record.AppliedTo(id);
  const auto cpus = taken.find(std::string(kCpusetCpus));
  return cpus != taken.end() && properties.insert(*cpus).second;
}

template <typename T>
void KeepIfEmpty(T& fresh, const T& before) {
  if (fresh.empty()) {
    fresh = before;
  }
}

}  // namespace

ResourceAllocation MergeAllocation(const ResourceAllocation& before, ResourceAllocation fresh) {
  if (!fresh.hints.has_value()) {
    fresh.hints = before.hints;
  }
  if (before.is_inferred) {
    fresh.exclusive = fresh.is_inferred = true;
  }
  KeepIfEmpty(fresh.envs, before.envs);
  KeepIfEmpty(fresh.annotations, before.annotations);
  if (fresh.value == before.value) {
    KeepIfEmpty(fresh.amount_by_node, before.amount_by_node);
  }
  KeepIfEmpty(fresh.mounts, before.mounts);
  KeepIfEmpty(fresh.devices, before.devices);
  KeepIfEmpty(fresh.pool, before.pool);
  KeepIfEmpty(fresh.decided_by, before.decided_by);
  KeepIfEmpty(fresh.class_defaults, before.class_defaults);
  return fresh;
}

ReconcilePlan PlanReconcile(const NodeState& asked, const NodeState& now,
                            const AllocationsByPlugin& answers, const Machine& machine,
                            const CompareScope& scope) {
  return ReconcilePlanner(asked, now, answers, scope).Plan(machine, true);
}

ReconcilePlan PlanChanges(const NodeState& asked, const NodeState& now,
                          const AllocationsByPlugin& answers, const Machine& machine,
                          const std::set<std::string>& unasked) {
  const CompareScope scope{.unasked = unasked, .pods = {}};
  return ReconcilePlanner(asked, now, answers, scope).Plan(machine, false);
}

StringMap PropertiesToApply(const ContainerRecord& record, const std::string& id,
                            const CpuSet& offline) {
  const StringMap& taken = record.AppliedTo(id);
  StringMap properties;
  const bool shares = std::any_of(record.allocations.begin(), record.allocations.end(),
                                  [](const auto& entry) { return !entry.second->shares.empty(); });
  std::set<std::string_view> seen;  // of two resources with the same property, the first counts
  for (const auto& [resource, allocation] : record.allocations) {
    const std::string& property = allocation->oci_property;
    if (property.empty() || property == kOomScoreAdj || property == kHugepageLimits ||
        !seen.insert(property).second) {
      continue;
    }
    const bool differs = property == kCpusetCpus && (shares || !offline.Empty());
    const std::string together =
        differs ? WithoutOffline(WithShared(allocation->value, record.allocations), offline)
                : std::string();
    const std::string& value = differs ? together : allocation->value;
    const auto applied = taken.find(property);
    if (!value.empty() && (applied == taken.end() || applied->second != value)) {
      properties[property] = value;
    }
  }
  return properties;
}

CpuSet DueCpus(const ContainerRecord& record, const CpuSet& owned, const CpuSet& offline) {
  for (const auto& [resource, allocation] : record.allocations) {
    if (allocation->oci_property == kCpusetCpus) {
      const auto cpus = CpuSet::Parse(WithShared(allocation->value, record.allocations));
      return cpus.ok() ? *cpus - owned - offline : CpuSet();
    }
  }
  return {};
}

ContainerRecord AfterUpdate(const ContainerRecord& record, const PlannedUpdate& update,
                            Taken taken) {
  ContainerRecord now = record;
  now.applied = record.AppliedTo(update.container_id);
  now.applied_to = update.container_id;
  for (const auto& [property, value] : update.properties) {
    if (taken == Taken::kYes) {
      now.applied.Edit()[property] = value;
    } else {
      now.applied.Edit().erase(property);
    }
  }
  return now;
}

std::vector<PlannedUpdate> PlanUpdates(const NodeState& state,
                                       const std::map<ContainerKey, LiveContainer>& live,
                                       const CpuSet& offline,
                                       const std::set<ContainerKey>& deferred) {
  std::vector<PlannedUpdate> updates;
  for (const auto& [key, container] : live) {
    const ContainerRecord* record = container.started ? state.Find(key) : nullptr;
    if (record == nullptr) {
      continue;
    }
    StringMap properties = PropertiesToApply(*record, container.id, offline);
    const bool regains = deferred.contains(key) && AddCpusAgain(*record, container.id, properties);
    if (!properties.empty()) {
      const bool grows = regains || GainsCpus(record->AppliedTo(container.id), properties);
      updates.push_back({key, container.id, std::move(properties), grows});
    }
  }
  std::stable_partition(updates.begin(), updates.end(),
                        [](const PlannedUpdate& update) { return !update.grows; });
  return updates;
}

void TellOfOffline(const NodeState& state, const std::map<ContainerKey, LiveContainer>& live,
                   const CpuSet& offline, std::vector<std::string>& problems) {
  for (const auto& [key, container] : live) {
    const ContainerRecord* record = state.Find(key);
    const CpuSet lost = record == nullptr ? CpuSet() : OwnedCpus(record->allocations) & offline;
    if (!lost.Empty()) {
      problems.push_back(fmt::format(
          "{} lacks its exclusive CPUs {}, which are offline; bring them online, or delete the pod",
          NameOf(*state.FindPod(key.pod_uid), key.container), ToString(lost)));
    }
  }
}

}  // namespace qrm::manager
