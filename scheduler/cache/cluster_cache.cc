// Turns events into stays of pods and capacities of nodes.
#include "scheduler/cache/cluster_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/foreign_text.h"
#include "api/resource_version.h"
#include "scheduler/cache/filter.h"
#include "scheduler/cache/node_fit.h"

namespace qrm::scheduler {

StatusOr<std::unique_ptr<ClusterCache>> ClusterCache::Make(const HandleRegistry& handles) {
  std::unique_ptr<ClusterCache> cache(new ClusterCache(handles));
  for (const auto& [type, handle] : handles.handles()) {
    auto& view = cache->caches_[type];
    view = std::make_unique<ExtendedCache>(cache->nodes_, cache->mailbox_, type);
    cache->feed_.SetSubscriber(handles.guard(), type);
    QRM_RETURN_IF_ERROR(
        Annotate(handle->Run(*view, cache->feed_), "cannot run the handle of " + type));
  }
  for (const std::string& resource : cache->feed_.resources()) {
    cache->unlisted_.insert(resource);
  }
  return cache;
}

ClusterCache::~ClusterCache() {
  StopHandles();
}

void ClusterCache::StopHandles() {
  if (!std::exchange(stopped_, true)) {
    HandleCall call;
    for (const auto& [type, handle] : handles_.handles()) {
      handles_.guard().Run(type, call, [&stopping = *handle] { stopping.Stop(); });
    }
  }
}

void ClusterCache::RunPosted() {
  for (const Mailbox::Letter& letter : mailbox_.Take()) {
    handles_.guard().Run(letter.type, handles_.guard().writer(), letter.run);
    versions_[kPosted] = std::to_string(++posted_);
  }
}

void ClusterCache::SetPod(Pod pod) {
  if (!TakeVersion(kPods, pod.resource_version)) {
    return;
  }
  Strip(pod);
  if (const auto change = pods_.Set(std::move(pod))) {
    Move(*change);
  }
}

void ClusterCache::DeletePod(const std::string& uid, const std::string& version) {
  if (!TakeVersion(kPods, version)) {
    return;
  }
  if (const auto change = pods_.Delete(uid)) {
    Move(*change);
  }
}

void ClusterCache::ReplacePods(PodList list) {
  for (Pod& pod : list.pods) {
    AddListed(std::move(pod));
  }
  for (const StayChange& change : pods_.Replace(list.begun)) {
    Move(change);
  }
  Listed(kPods, list.version);
}

void ClusterCache::AddListed(Pod pod) {
  Strip(pod);
  pods_.AddListed(std::move(pod));
}

void ClusterCache::SetNode(Node node) {
  if (!TakeVersion(kNodes, node.resource_version)) {
    return;
  }
  const auto shared = std::make_shared<const Node>(std::move(node));
  nodes_.SetNode(shared);
  feed_.TellNode(shared->name, shared.get());
}

void ClusterCache::DeleteNode(const std::string& name, const std::string& version) {
  if (!TakeVersion(kNodes, version)) {
    return;
  }
  nodes_.RemoveNode(name);
  feed_.TellNode(name, nullptr);
}

void ClusterCache::ReplaceNodes(std::vector<Node> nodes, const std::string& version) {
  std::set<std::string> gone = nodes_.node_names();
  for (Node& node : nodes) {
    gone.erase(node.name);
    const auto shared = std::make_shared<const Node>(std::move(node));
    nodes_.SetNode(shared);
    feed_.TellNode(shared->name, shared.get());
  }
  for (const std::string& name : gone) {
    nodes_.RemoveNode(name);
    feed_.TellNode(name, nullptr);
  }
  Listed(kNodes, version);
}

void ClusterCache::SetObject(const std::string& resource, Object object) {
  if (TakeVersion(resource, object.resource_version)) {
    feed_.Set(resource, std::move(object));
  }
}

void ClusterCache::DeleteObject(const std::string& resource, const std::string& name,
                                const std::string& version) {
  if (TakeVersion(resource, version)) {
    feed_.Delete(resource, name);
  }
}

void ClusterCache::ReplaceObjects(const std::string& resource, std::vector<Object> objects,
                                  const std::string& version) {
  feed_.Replace(resource, std::move(objects));
  Listed(resource, version);
}

bool ClusterCache::TakeNewAnnotationKeys() {
  return std::exchange(taken_keys_, feed_.annotation_keys()) != feed_.annotation_keys();
}

bool ClusterCache::FitsWithout(const Pod& pod, const std::string& node,
                               const std::vector<std::string>& uids) {
  const SnapshotPtr now = Publish();
  WhatIf left(*now, handles_, node);
  for (const std::string& uid : uids) {
    if (const PackedPodPtr stay = pods_.FindStay(uid); stay != nullptr && *stay->node == node) {
      left.Remove(Unpack(*stay));
    }
  }
  left.AddNominatedBeside(pod);
  return left.Judge(pod).why.empty();
}

std::optional<std::vector<PodPtr>> ClusterCache::VictimsOn(const Pod& pod,
                                                           const std::string& node) {
  const SnapshotPtr now = Publish();
  const auto* const there = nodes_.FindPods(node);
  if (there == nullptr || JudgeNode(*now, handles_, pod, node).why.empty()) {
    return std::nullopt;
  }
  WhatIf left(*now, handles_, node);
  left.AddNominatedBeside(pod);
  std::vector<PodPtr> victims;
  for (const PackedPodPtr& stay : *there) {
    auto other = std::make_shared<const Pod>(Unpack(*stay));
    const PodPtr shown = pods_.Find(other->uid);
    const bool ends = shown != nullptr && shown->ending;
    if (ends || other->priority < pod.priority) {
      left.Remove(*other);
    }
    if (!ends && other->priority < pod.priority) {
      victims.push_back(std::move(other));
    }
  }
  if (!left.Judge(pod).why.empty()) {
    return std::nullopt;
  }
  std::stable_sort(victims.begin(), victims.end(),
                   [](const PodPtr& a, const PodPtr& b) { return a->priority > b->priority; });
  std::erase_if(victims, [&](const PodPtr& victim) {  // it stays if the pod fits beside it
    left.Add(*victim);
    if (left.Judge(pod).why.empty()) {
      return true;
    }
    left.Remove(*victim);
    return false;
  });
  return victims;
}

StatusOr<StringMap> ClusterCache::Assume(const std::string& uid, const std::string& node) {
  if (pods_.AssumedOn(uid) == node && !node.empty()) {
    return decisions_.at(uid);
  }
  QRM_RETURN_IF_ERROR(CheckAssumable(uid, node));
  const SnapshotPtr now = Publish();
  QRM_RETURN_IF_ERROR(CheckSynced(*now));
  const PodPtr pod = pods_.Find(uid);
  if (const std::string refusal = RefusalOf(*now, handles_, *pod, node); !refusal.empty()) {
    return Errorf(StatusCode::kResourceExhausted,
                  "cannot bind pod {}/{} to node {}: {}; it is tried again on what fits then",
                  pod->pod_namespace, pod->name, node, refusal);
  }
  QRM_RETURN_IF_ERROR(CheckSameView(*now, *pod, node));
  QRM_ASSIGN_OR_RETURN(StringMap decision, DecisionOf(*now, handles_, *pod, node));
  QRM_RETURN_IF_ERROR(Reserve(*pod, node));
  decisions_[uid] = decision;
  Move(pods_.Assume(uid, node, decision));
  return decision;
}

void ClusterCache::Release(const std::string& uid, const std::string& node) {
  if (const auto change = pods_.Release(uid, node)) {
    Move(*change);
  }
}

SnapshotPtr ClusterCache::Publish() {
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->missing = unlisted_.empty() ? std::string() : *unlisted_.begin();
  snapshot->versions = versions_;
  snapshot->annotation_keys = feed_.annotation_keys();
  snapshot->buckets = nodes_.Publish();
  snapshot->nominated = pods_.nominated();
  return snapshot;
}

std::string ClusterCache::Dump() const {
  const nlohmann::json dump = {{"assumed", pods_.assumed()}, {"nodes", nodes_.Dump()}};
  return EscapedJson(dump.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

bool ClusterCache::TakeVersion(const std::string& kind, const std::string& version) {
  std::string& reached = versions_[kind];
  if (!version.empty() && CompareVersions(version, reached) <= 0) {
    return false;
  }
  reached = version.empty() ? reached : version;
  return true;
}

void ClusterCache::Listed(const std::string& kind, const std::string& version) {
  versions_[kind] = version;
  unlisted_.erase(kind);
}

void ClusterCache::Move(const StayChange& change) {
  const PackedPodPtr& stay = change.before != nullptr ? change.before : change.after;
  if (stay == nullptr) {
    return;
  }
  if (pods_.AssumedOn(stay->uid).empty() && decisions_.erase(stay->uid) != 0 &&
      (change.after == nullptr || *change.after->node != *stay->node)) {
    Unreserve(Unpack(*stay), *stay->node);
  }
  if (change.before != nullptr) {
    nodes_.RemovePod(change.before);
  }
  if (change.after != nullptr) {
    nodes_.AddPod(change.after);
  }
}

Status ClusterCache::Reserve(const Pod& pod, const std::string& node) {
  HandleGuard& guard = handles_.guard();
  for (auto each = handles_.handles().begin(); each != handles_.handles().end(); ++each) {
    Status reserved;
    const bool done = guard.Run(each->first, guard.writer(),
                                [&] { reserved = each->second->Reserve(pod, node); });
    if (!done && guard.failing == WhenUnknown::kFilter) {
      reserved = Errorf(StatusCode::kInternal, "the resource {} does not work", each->first);
    }
    if (reserved.ok()) {
      continue;
    }
    while (each != handles_.handles().begin()) {
      --each;
      guard.Run(each->first, guard.writer(), [&] { each->second->Unreserve(pod, node); });
    }
    return Annotate(reserved,
                    "cannot bind pod " + pod.pod_namespace + "/" + pod.name + " to node " + node);
  }
  return OkStatus();
}

void ClusterCache::Unreserve(const Pod& pod, const std::string& node) {
  HandleGuard& guard = handles_.guard();
  for (const auto& [type, handle] : handles_.handles()) {
    guard.Run(type, guard.writer(), [&, &asked = *handle] { asked.Unreserve(pod, node); });
  }
}

void ClusterCache::Strip(Pod& pod) const {
  pod.annotations = feed_.annotation_keys()->KeptOf(pod.annotations);
}

Status ClusterCache::CheckSameView(const Snapshot& now, const Pod& pod,
                                   const std::string& node) const {
  std::vector<Pod> others;
  if (const auto* const there = nodes_.FindPods(node); there != nullptr) {
    std::transform(there->begin(), there->end(), std::back_inserter(others),
                   [](const PackedPodPtr& other) { return Unpack(*other); });
  }
  const std::string lack = ShortOf(*now.Find(node)->node, pod, others);
  return lack.empty()
             ? OkStatus()
             : Errorf(StatusCode::kResourceExhausted,
                      "cannot bind pod {}/{} to node {}: kube-scheduler has not seen a change of "
                      "the node or its pods, by which the node has too little {}; it is tried "
                      "again in a moment",
                      pod.pod_namespace, pod.name, node, lack);
}

Status ClusterCache::CheckAssumable(const std::string& uid, const std::string& node) const {
  const PodPtr pod = pods_.Find(uid);
  if (pod == nullptr) {
    return Errorf(StatusCode::kUnavailable,
                  "cannot bind pod {} to node {}: the pod has not been seen yet, or is gone; try "
                  "again in a moment",
                  uid, node);
  }
  const PackedPodPtr stay = pods_.FindStay(uid);
  if (stay != nullptr || pod->finished) {
    return Errorf(StatusCode::kFailedPrecondition,
                  "cannot bind pod {}/{} to node {}: it {}; look at the pod", pod->pod_namespace,
                  pod->name, node,
                  stay == nullptr                ? "has finished"
                  : pods_.AssumedOn(uid).empty() ? "is on node " + *stay->node
                                                 : "is being bound to node " + *stay->node);
  }
  return OkStatus();
}

}  // namespace qrm::scheduler
