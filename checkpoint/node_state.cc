// Makes the next state by copying the present one and replacing the parts that change.
#include "checkpoint/node_state.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <boost/container_hash/hash.hpp>

#include "checkpoint/holdings.h"
#include "checkpoint/persistent_map.h"

namespace qrm::checkpoint {
namespace {

using PendingRemovals = std::map<std::string, std::set<std::string>>;

/// Namespaces cannot contain '/'. Source: Kubernetes, "Object Names and IDs" (RFC 1123 label).
std::string NameKey(const std::string& pod_namespace, const std::string& name) {
  return pod_namespace + "/" + name;
}

std::string NameKey(const PodMeta& meta) {
  return NameKey(meta.pod_namespace, meta.name);
}

// Helpers of Since.

void AddRemovedContainers(const PodRecord& before, const PodRecord& now, Change& change) {
  for (const auto& [container, record] : before.containers) {
    if (!now.containers.contains(container)) {
      change.remove_containers.push_back({.pod_uid = now.meta.uid, .container = container});
    }
  }
}

void AddPuts(const PodRecord* before, const PodRecord& now, Change& change) {
  if (before == &now) {
    return;
  }
  const bool same_meta = before != nullptr && before->meta == now.meta;
  for (const auto& [container, record] : now.containers) {
    const auto known = same_meta ? before->containers.find(container) : now.containers.end();
    const bool same = same_meta && known != before->containers.end() && known->second == record;
    if (!same) {
      change.put_containers.push_back({.pod = now.meta, .container = container, .record = *record});
    }
  }
}

/// The pairs of `all` that are not in `without`.
void AddPending(const PendingRemovals& all, const PendingRemovals& without,
                std::vector<std::pair<std::string, std::string>>& pairs) {
  for (const auto& [uid, resources] : all) {
    const auto other = without.find(uid);
    for (const std::string& resource : resources) {
      if (other == without.end() || !other->second.contains(resource)) {
        pairs.emplace_back(uid, resource);
      }
    }
  }
}

/// A value that is gone is put as an empty one.
void AddPluginValues(const StringMap& before, const StringMap& now, StringMap& puts) {
  for (const auto& [plugin, value] : now) {
    const auto known = before.find(plugin);
    if (known == before.end() || known->second != value) {
      puts[plugin] = value;
    }
  }
  for (const auto& [plugin, value] : before) {
    if (!now.contains(plugin)) {
      puts[plugin] = "";
    }
  }
}

}  // namespace

struct NodeState::Rep {
  PersistentMap<PodPtr> pods;
  /// The UIDs under one name, in the order of their admission: a new pod may take the name of one
  /// that is not yet gone.
  PersistentMap<std::vector<SharedText>> uids_by_name;
  /// What follows from the pods, so that no admission has to walk them.
  PersistentMap<PodPtr> cpu_owners;
  std::map<uint64_t, uint64_t> bound_memory;
  std::shared_ptr<const ClassUse> class_use = std::make_shared<ClassUse>();
  std::shared_ptr<const CpuLists> cpu_lists = std::make_shared<CpuLists>();
  std::size_t containers = 0;
  int64_t last_order = 0;
  std::shared_ptr<const PendingRemovals> pending = std::make_shared<PendingRemovals>();
  std::shared_ptr<const StringMap> plugin_values = std::make_shared<StringMap>();
};

/// Applies one change to a copy of a Rep. Removals come first, as on disk.
class NodeState::Transition {
 public:
  explicit Transition(const Rep& before)
      : before_(before),
        rep_(std::make_shared<Rep>(before)),
        pods_(rep_->pods),
        names_(rep_->uids_by_name) {}

  void RemovePod(const std::string& uid) {
    const PodPtr* pod = rep_->pods.Find(uid);
    if (pod == nullptr) {
      return;
    }
    rep_->containers -= (*pod)->containers.size();
    DropName((*pod)->meta);
    pods_.Erase(uid);
    mine_.erase(uid);
    touched_.insert(uid);
  }

  void RemoveContainer(const ContainerKey& key) {
    const PodPtr* pod = rep_->pods.Find(key.pod_uid);
    if (pod == nullptr || !(*pod)->containers.contains(key.container)) {
      return;
    }
    if ((*pod)->containers.size() == 1) {
      RemovePod(key.pod_uid);
      return;
    }
    Edit(key.pod_uid, pod->get()).containers.erase(key.container);
    --rep_->containers;
  }

  void Put(Change::PutContainer put) {
    const SharedText uid = put.pod.uid;
    const PodPtr* known = rep_->pods.Find(uid);
    const bool renamed = known != nullptr && NameKey((*known)->meta) != NameKey(put.pod);
    if (renamed) {
      DropName((*known)->meta);
    }
    PodRecord& pod = Edit(uid, known == nullptr ? nullptr : known->get());
    if (known == nullptr || renamed) {
      AddName(put.pod);
      pod.order = ++rep_->last_order;
    }
    pod.meta = std::move(put.pod);
    auto record = std::make_shared<const ContainerRecord>(std::move(put.record));
    rep_->containers +=
        pod.containers.insert_or_assign(std::move(put.container), std::move(record)).second ? 1 : 0;
  }

  void ChangePending(const Change& change) {
    if (change.add_pending_removals.empty() && change.done_pending_removals.empty()) {
      return;
    }
    auto pending = std::make_shared<PendingRemovals>(*rep_->pending);
    for (const auto& [uid, resource] : change.done_pending_removals) {
      const auto entry = pending->find(uid);
      if (entry != pending->end() && entry->second.erase(resource) > 0 && entry->second.empty()) {
        pending->erase(entry);
      }
    }
    for (const auto& [uid, resource] : change.add_pending_removals) {
      (*pending)[uid].insert(resource);
    }
    rep_->pending = std::move(pending);
  }

  void PutPluginValues(const StringMap& values) {
    if (values.empty()) {
      return;
    }
    auto next = std::make_shared<StringMap>(*rep_->plugin_values);
    for (const auto& [plugin, value] : values) {
      value.empty() ? void(next->erase(plugin)) : void(next->insert_or_assign(plugin, value));
    }
    rep_->plugin_values = std::move(next);
  }

  std::shared_ptr<const Rep> Finish() && {
    PersistentMap<PodPtr>::Editor owners(rep_->cpu_owners);
    for (const SharedText& uid : touched_) {
      const PodPtr* const found_before = before_.pods.Find(uid);
      const PodPtr* const found = rep_->pods.Find(uid);
      const PodRecord* const before = found_before == nullptr ? nullptr : found_before->get();
      const PodRecord* const now = found == nullptr ? nullptr : found->get();
      Recount(before, now, rep_->bound_memory);
      Recount(before, now, rep_->class_use);
      Recount(before, now, rep_->cpu_lists);
      if (now != nullptr && OwnsCpus(*now)) {
        owners.Put(uid, *found);
      } else {
        owners.Erase(uid);
      }
    }
    return std::move(rep_);
  }

 private:
  /// The record of `uid` that this transition may change: a copy of `present`, once; a new one when
  /// that is null.
  PodRecord& Edit(const SharedText& uid, const PodRecord* present) {
    const auto mine = mine_.find(uid);
    if (mine != mine_.end()) {
      return *mine->second;
    }
    auto copy =
        present == nullptr ? std::make_shared<PodRecord>() : std::make_shared<PodRecord>(*present);
    PodRecord& record = *copy;
    pods_.Put(uid, std::move(copy));
    mine_.emplace(uid, &record);
    touched_.insert(uid);
    return record;
  }

  void AddName(const PodMeta& meta) {
    const std::string key = NameKey(meta);
    const std::vector<SharedText>* known = rep_->uids_by_name.Find(key);
    std::vector<SharedText> uids = known == nullptr ? std::vector<SharedText>() : *known;
    uids.push_back(meta.uid);
    names_.Put(key, std::move(uids));
  }

  void DropName(const PodMeta& meta) {
    const std::string key = NameKey(meta);
    std::vector<SharedText> uids = *rep_->uids_by_name.Find(key);
    std::erase(uids, meta.uid);
    if (uids.empty()) {
      names_.Erase(key);
    } else {
      names_.Put(key, std::move(uids));
    }
  }

  const Rep& before_;
  std::shared_ptr<Rep> rep_;
  PersistentMap<PodPtr>::Editor pods_;
  PersistentMap<std::vector<SharedText>>::Editor names_;
  std::unordered_map<std::string, PodRecord*> mine_;  // records made by this transition
  std::set<SharedText, std::less<>> touched_;         // UIDs
};

std::size_t hash_value(const Origin& origin) {
  std::size_t hash = boost::hash<std::string>()(origin.plugin);
  boost::hash_combine(hash, origin.endpoint);
  return hash;
}

bool Change::Empty() const {
  return put_containers.empty() && remove_pods.empty() && remove_containers.empty() &&
         add_pending_removals.empty() && done_pending_removals.empty() && put_plugin_values.empty();
}

const StringMap& ContainerRecord::AppliedTo(const std::string& id) const {
  static const StringMap none;
  return applied_to == id ? applied.get() : none;
}

std::string ContainerRecord::PluginOf(const std::string& resource) const {
  const auto origin = origins.find(resource);
  return origin == origins.end() ? resource : origin->second.plugin;
}

NodeState::NodeState() : rep_(std::make_shared<const Rep>()) {}
NodeState::~NodeState() = default;
NodeState::NodeState(const NodeState&) = default;
NodeState& NodeState::operator=(const NodeState&) = default;

NodeState NodeState::Restore(const std::vector<PodPtr>& pods) {
  auto rep = std::make_shared<Rep>();
  std::vector<std::pair<SharedText, PodPtr>> by_uid;
  std::vector<std::pair<SharedText, PodPtr>> owners;
  std::vector<std::pair<std::string, const PodRecord*>> named;
  auto cpu_lists = std::make_shared<CpuLists>();
  by_uid.reserve(pods.size());
  named.reserve(pods.size());
  for (const PodPtr& pod : pods) {
    by_uid.emplace_back(pod->meta.uid, pod);
    named.emplace_back(NameKey(pod->meta), pod.get());
    rep->containers += pod->containers.size();
    rep->last_order = std::max(rep->last_order, pod->order);
    Recount(nullptr, pod.get(), rep->bound_memory);
    Recount(nullptr, pod.get(), rep->class_use);
    AddCpuLists(*pod, *cpu_lists);
    if (OwnsCpus(*pod)) {
      owners.emplace_back(pod->meta.uid, pod);
    }
  }
  rep->pods = PersistentMap<PodPtr>(std::move(by_uid));
  rep->cpu_owners = PersistentMap<PodPtr>(std::move(owners));
  rep->cpu_lists = std::move(cpu_lists);

  std::sort(named.begin(), named.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first, a.second->order) < std::tie(b.first, b.second->order);
  });
  std::vector<std::pair<SharedText, std::vector<SharedText>>> uids_by_name;
  uids_by_name.reserve(named.size());
  for (auto& [name, pod] : named) {
    if (uids_by_name.empty() || uids_by_name.back().first != name) {
      uids_by_name.emplace_back(std::move(name), std::vector<SharedText>());
    }
    uids_by_name.back().second.push_back(pod->meta.uid);
  }
  rep->uids_by_name = PersistentMap<std::vector<SharedText>>(std::move(uids_by_name));

  NodeState state;
  state.rep_ = std::move(rep);
  return state;
}

NodeState NodeState::With(Change change) const {
  Transition transition(*rep_);
  for (const std::string& uid : change.remove_pods) {
    transition.RemovePod(uid);
  }
  for (const ContainerKey& key : change.remove_containers) {
    transition.RemoveContainer(key);
  }
  for (Change::PutContainer& put : change.put_containers) {
    transition.Put(std::move(put));
  }
  transition.ChangePending(change);
  transition.PutPluginValues(change.put_plugin_values);

  NodeState next;
  next.rep_ = std::move(transition).Finish();
  return next;
}

const PodRecord* NodeState::FindPod(const std::string& uid) const {
  const PodPtr* pod = rep_->pods.Find(uid);
  return pod == nullptr ? nullptr : pod->get();
}

const ContainerRecord* NodeState::Find(const ContainerKey& key) const {
  const PodRecord* pod = FindPod(key.pod_uid);
  if (pod == nullptr) {
    return nullptr;
  }
  const auto found = pod->containers.find(key.container);
  return found == pod->containers.end() ? nullptr : found->second.get();
}

const PodRecord* NodeState::FindPodByName(const std::string& pod_namespace,
                                          const std::string& name) const {
  const auto* uids = rep_->uids_by_name.Find(NameKey(pod_namespace, name));
  return uids == nullptr ? nullptr : FindPod(uids->back());
}

void NodeState::ForEachPod(const std::function<void(const PodRecord&)>& visit) const {
  rep_->pods.ForEach([&](const SharedText&, const PodPtr& pod) { visit(*pod); });
}

void NodeState::ForEachPodNamed(const std::string& pod_namespace, const std::string& name,
                                const std::function<void(const PodRecord&)>& visit) const {
  if (const auto* uids = rep_->uids_by_name.Find(NameKey(pod_namespace, name)); uids != nullptr) {
    for (const std::string& uid : *uids) {
      visit(*FindPod(uid));
    }
  }
}

void NodeState::ForEachCpuOwner(const std::function<void(const PodRecord&)>& visit) const {
  rep_->cpu_owners.ForEach([&](const SharedText&, const PodPtr& pod) { visit(*pod); });
}

const std::map<uint64_t, uint64_t>& NodeState::bound_memory() const {
  return rep_->bound_memory;
}

const ClassUse& NodeState::class_use() const {
  return *rep_->class_use;
}

const CpuLists& NodeState::cpu_lists() const {
  return *rep_->cpu_lists;
}

std::size_t NodeState::pod_count() const {
  return rep_->pods.size();
}

std::size_t NodeState::container_count() const {
  return rep_->containers;
}

const PendingRemovals& NodeState::pending_removals() const {
  return *rep_->pending;
}

const StringMap& NodeState::plugin_values() const {
  return *rep_->plugin_values;
}

Change NodeState::Since(const NodeState& before) const {
  Change change;
  before.ForEachPod([&](const PodRecord& pod) {
    const PodRecord* now = FindPod(pod.meta.uid);
    if (now == nullptr) {
      change.remove_pods.push_back(pod.meta.uid);
    } else if (now != &pod) {
      AddRemovedContainers(pod, *now, change);
    }
  });
  rep_->uids_by_name.ForEach([&](const SharedText&, const std::vector<SharedText>& uids) {
    for (const std::string& uid : uids) {
      AddPuts(before.FindPod(uid), *FindPod(uid), change);
    }
  });
  AddPending(before.pending_removals(), pending_removals(), change.done_pending_removals);
  AddPending(pending_removals(), before.pending_removals(), change.add_pending_removals);
  AddPluginValues(before.plugin_values(), plugin_values(), change.put_plugin_values);
  return change;
}

PodSet NodeState::PodsUnlike(const NodeState& other) const {
  return rep_ == other.rep_ ? PodSet() : rep_->pods.KeysUnlike(other.rep_->pods);
}

bool operator==(const NodeState& a, const NodeState& b) {
  return a.rep_ == b.rep_ || a.AsChange() == b.AsChange();
}

}  // namespace qrm::checkpoint
