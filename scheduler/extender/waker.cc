// Compares snapshots on a timer: what a pod was judged by with what there is now.
#include "scheduler/extender/waker.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <boost/asio/steady_timer.hpp>
#include <nlohmann/json.hpp>

#include "api/base/foreign_json.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "cluster/requests.h"
#include "scheduler/cache/filter.h"
#include "scheduler/cache/read_objects.h"
#include "scheduler/extender/preemptor.h"

namespace qrm::scheduler {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr char kAnnotation[] = "qrm.io/room-seen";

/// A pod that waits.
struct Waiting {
  PodPtr pod;
  uint64_t order = 0;  ///< of the pods that wait
  SnapshotPtr seen;    ///< it fits no node of this snapshot except `node`
  std::string node;    ///< that it fits; empty: none
  Clock::time_point judged;
  Clock::time_point rests_until;
  milliseconds rest{0};
  std::vector<std::string> candidates;  ///< nodes that reject it as long as no pod ends there
  Clock::time_point preempts_at;
};
using WaitingPtr = std::shared_ptr<Waiting>;

VersionByKind CustomVersions(const Snapshot& snapshot) {
  VersionByKind versions = snapshot.versions;
  versions.erase(kPods);
  versions.erase(kNodes);
  return versions;
}

bool HasOtherResources(const NodeBucket& before, const std::string& node, const NodeView& view) {
  const auto found = before.find(node);
  return found == before.end() ||
         (found->second.get() != &view && found->second->resources != view.resources);
}

/// What is new since a pod was judged.
struct Change {
  std::vector<std::string> nodes;       // whose resources are others
  bool is_of_custom_resources = false;  // kube-scheduler does not try again by itself
};

/// Cost: the nodes that have changed, and those that share a bucket with one.
Change ChangeOf(const Snapshot& before, const Snapshot& now) {
  static const NodeBucket no_nodes;
  Change change{.is_of_custom_resources = CustomVersions(before) != CustomVersions(now)};
  for (std::size_t i = 0; i < now.buckets.size(); ++i) {
    if (now.buckets[i] == before.buckets[i] || now.buckets[i] == nullptr) {
      continue;
    }
    const NodeBucket& old = before.buckets[i] == nullptr ? no_nodes : *before.buckets[i];
    for (const auto& [node, view] : *now.buckets[i]) {
      if (HasOtherResources(old, node, *view)) {
        change.nodes.push_back(node);
      }
    }
  }
  return change;
}

}  // namespace

struct Waker::Impl final : std::enable_shared_from_this<Impl> {
  Impl(const Peers& waker_peers, const Options& waker_options)
      : peers(waker_peers),
        options(waker_options),
        preemptor(std::make_shared<Preemptor>(
            Preemptor::Peers{waker_peers.client, waker_peers.cache, waker_peers.metrics})),
        timer(waker_peers.io) {}

  void Tick() {
    Look();
    Preempt();
    timer.expires_after(options.period);
    timer.async_wait(cluster::WhileItRuns(weak_from_this(),
                                          [](Impl& self, const boost::system::error_code& error) {
                                            if (!error) {
                                              self.Tick();
                                            }
                                          }));
  }

  /// Those that wait, the longest first; others are forgotten.
  std::vector<WaitingPtr> TakeWaiting(Clock::time_point now) {
    std::vector<WaitingPtr> list;
    const MutexLock lock(mutex);
    std::erase_if(
        waiting, [&](const auto& entry) { return now - entry.second->judged > options.forgotten; });
    list.reserve(waiting.size());
    for (const auto& [uid, pod] : waiting) {
      list.push_back(std::make_shared<Waiting>(*pod));
    }
    std::sort(list.begin(), list.end(),
              [](const WaitingPtr& a, const WaitingPtr& b) { return a->order < b->order; });
    return list;
  }

  /// Keeps the result for `pod`, unless it was judged again meanwhile.
  void Keep(const WaitingPtr& pod) {
    const MutexLock lock(mutex);
    const auto found = waiting.find(pod->pod->uid);
    if (found != waiting.end() && found->second->judged == pod->judged) {
      pod->candidates = found->second->candidates;
      pod->preempts_at = found->second->preempts_at;
      found->second = pod;
    }
  }

  /// kube-scheduler goes on to wait for the node that it nominated.
  std::vector<std::string> CandidatesFor(const Pod& pod, const FilterAnswer& answer) const {
    std::vector<std::string> nodes;
    if (!pod.preempts) {
      return nodes;
    }
    if (answer.refused.contains(pod.nominated)) {
      return {pod.nominated};
    }
    for (const auto& [node, why] : answer.refused) {
      if (nodes.size() < options.most_candidates) {
        nodes.push_back(node);
      }
    }
    return nodes;
  }

  /// The process that judged the pods before is gone, with its results: as far as we know, they fit
  /// no node yet.
  void Begin(const Snapshot& now) {
    if (begun || !CheckSynced(now).ok()) {
      return;
    }
    begun = true;
    std::vector<PodPtr> pods;
    peers.cache.Run([&](const ClusterCache& cache) { pods = cache.refused(); });
    const auto nothing = std::make_shared<const Snapshot>();
    const MutexLock lock(mutex);
    for (const PodPtr& pod : pods) {
      if (waiting.size() < options.most_waiting && IsWanting(*pod)) {
        const Waiting first{
            .pod = pod, .order = next_order++, .seen = nothing, .judged = Clock::now()};
        waiting.emplace(pod->uid, std::make_shared<Waiting>(first));
      }
    }
  }

  bool IsWanting(const Pod& pod) const {
    const auto& handles = peers.cache.handles().handles();
    return std::any_of(handles.begin(), handles.end(),
                       [&](const auto& handle) { return handle.second->Wants(pod); });
  }

  void Look() {
    const SnapshotPtr now = peers.cache.Load();
    Begin(*now);
    {
      const MutexLock lock(mutex);
      const bool again = std::exchange(judged_anew, false) || unfinished;
      if (waiting.empty() || (now == looked && !again)) {
        looked = now;
        return;
      }
    }
    looked = now;
    unfinished = false;
    const std::vector<WaitingPtr> pods = TakeWaiting(Clock::now());
    Check(pods, now);
    Wake(pods, now);
  }

  void Check(const std::vector<WaitingPtr>& pods, const SnapshotPtr& now) {
    std::map<const Snapshot*, Change> changes;
    int checks = 0;
    for (const WaitingPtr& pod : pods) {
      if (pod->seen == now) {
        continue;
      }
      if (checks >= options.most_checks) {
        unfinished = true;
        return;
      }
      const auto [change, is_new] = changes.try_emplace(pod->seen.get());
      if (is_new) {
        change->second = ChangeOf(*pod->seen, *now);
      }
      checks += CheckNodes(change->second, now, pod);
      pod->seen = now;
      Keep(pod);
    }
  }

  /// Finds a node for `pod`; returns how many it looked at.
  int CheckNodes(const Change& change, const SnapshotPtr& now, const WaitingPtr& pod) {
    int checks = 0;
    for (const std::string& node : change.nodes) {
      ++checks;
      if (!Fits(*now, *pod, node)) {
        continue;
      }
      if (!change.is_of_custom_resources) {
        if (Fits(*pod->seen, *pod, node)) {
          continue;  // no change: something else rejected it there
        }
        if (pod->node.empty()) {  // else it rests already, and not for ever where pods keep ending
          pod->rests_until = std::max(pod->rests_until, Clock::now() + options.own_try);
        }
      }
      pod->node = node;
      break;
    }
    return checks;
  }

  bool Fits(const Snapshot& snapshot, const Waiting& pod, const std::string& node) const {
    return RefusalOf(snapshot, peers.cache.handles(), *pod.pod, node).empty();
  }

  /// Each is checked once more, for the one before it may have taken the room.
  void Wake(const std::vector<WaitingPtr>& pods, const SnapshotPtr& now) {
    std::size_t woken = 0;
    for (const WaitingPtr& pod : pods) {
      if (pod->node.empty()) {
        continue;
      }
      const auto time = Clock::now();
      if (woken >= options.most_at_once || time < pod->rests_until) {
        unfinished = true;
        continue;
      }
      if (Fits(*now, *pod, pod->node)) {
        ++woken;
        Patch(*pod->pod);
        pod->rest = std::clamp<milliseconds>(2 * pod->rest, options.first_rest, options.most_rest);
        pod->rests_until = time + pod->rest;
      }
      pod->node.clear();
      Keep(pod);
    }
  }

  /// For one pod in a period, of those of the most priority that which waits the longest.
  void Preempt() {
    if (!options.may_preempt()) {
      return;
    }
    PodPtr pod;
    std::vector<std::string> nodes;
    {
      const MutexLock lock(mutex);
      Waiting first;
      for (const auto& [uid, each] : waiting) {
        if (!each->candidates.empty() && Clock::now() >= each->preempts_at &&
            (first.pod == nullptr || std::pair(-each->pod->priority, each->order) <
                                         std::pair(-first.pod->priority, first.order))) {
          first = *each;
        }
      }
      if (first.pod == nullptr) {
        return;
      }
      pod = first.pod;
      nodes = std::exchange(first.candidates, {});
      first.preempts_at = Clock::now() + options.preempt_rest;
      waiting[pod->uid] = std::make_shared<Waiting>(std::move(first));
    }
    preemptor->Preempt(*pod, nodes);
  }

  void Patch(const Pod& pod) {
    const nlohmann::json patch = {
        {"metadata",
         {{"uid", pod.uid},
          {"annotations", {{kAnnotation, cluster::MicroTime(std::chrono::system_clock::now())}}}}}};
    peers.client.Call(
        cluster::MergePatchRequest(cluster::PodPath(pod.pod_namespace, pod.name), patch),
        cluster::WhileItRuns(weak_from_this(),
                             [uid = pod.uid](Impl& self, const StatusOr<std::string>& body) {
                               self.TakeAnswer(uid, body);
                             }));
  }

  void TakeAnswer(const std::string& uid, const StatusOr<std::string>& body) {
    peers.metrics.CountWake(body.ok());
    const bool is_gone = body.status().code() == StatusCode::kNotFound ||
                         body.status().code() == StatusCode::kAborted;  // another of that name
    if (!body.ok() && !is_gone) {
      if (!std::exchange(complained, true)) {
        log::Warning("waiting pod cannot be woken", {{"error", MessageOf(body.status())}});
      }
      return;
    }
    complained = false;
    const auto pod = ParseJson(body.value_or("")).value_or(nlohmann::json());
    if (is_gone || !TextAt(pod, "/spec/nodeName").empty()) {
      const MutexLock lock(mutex);
      waiting.erase(uid);
    }
  }

  const Peers peers;
  const Options options;
  const std::shared_ptr<Preemptor> preemptor;
  boost::asio::steady_timer timer;
  SnapshotPtr looked;       // all pods were compared with it, unless `unfinished`
  bool unfinished = false;  // some pods must be checked again, even without changes
  bool complained = false;
  bool begun = false;
  bool stopped = false;

  mutable Mutex mutex;
  std::map<std::string, WaitingPtr> waiting
      QRM_GUARDED_BY(mutex);  // by UID; what it points to never changes
  uint64_t next_order QRM_GUARDED_BY(mutex) = 0;
  bool judged_anew QRM_GUARDED_BY(mutex) = false;  // perhaps by an older snapshot than `looked`
};

Waker::Waker(const Peers& peers, const Options& options)
    : impl_(std::make_shared<Impl>(peers, options)) {}

Waker::~Waker() {
  impl_->stopped = true;
}

void Waker::Start() {
  impl_->Tick();
}

void Waker::OnPreempted(const std::string& uid) {
  const MutexLock lock(impl_->mutex);
  if (const auto found = impl_->waiting.find(uid); found != impl_->waiting.end()) {
    auto next = std::make_shared<Waiting>(*found->second);
    next->candidates.clear();
    next->preempts_at = Clock::now() + impl_->options.preempt_rest;
    found->second = std::move(next);
  }
}

void Waker::OnJudged(const Pod& pod, const SnapshotPtr& snapshot, const FilterAnswer& answer) {
  const bool fits = !answer.nodes.empty();
  const MutexLock lock(impl_->mutex);
  const auto found = impl_->waiting.find(pod.uid);
  if (fits) {
    if (found != impl_->waiting.end()) {
      impl_->waiting.erase(found);
    }
    return;
  }
  if (found == impl_->waiting.end() && impl_->waiting.size() >= impl_->options.most_waiting) {
    return;
  }
  auto next = std::make_shared<Waiting>(
      found == impl_->waiting.end() ? Waiting{.order = impl_->next_order++} : *found->second);
  next->pod = std::make_shared<const Pod>(pod);
  next->seen = snapshot;
  next->node.clear();
  next->judged = Clock::now();
  if (next->candidates.empty()) {
    next->preempts_at = std::max(next->preempts_at, next->judged + impl_->options.own_try);
  }
  next->candidates = impl_->CandidatesFor(pod, answer);
  impl_->waiting[pod.uid] = std::move(next);
  impl_->judged_anew = true;
}

std::size_t Waker::waiting() const {
  const MutexLock lock(impl_->mutex);
  return impl_->waiting.size();
}

}  // namespace qrm::scheduler
