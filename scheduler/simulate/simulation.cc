// Follows the clock from event to event: first what ends, then what comes.
#include "scheduler/simulate/simulation.h"

#include <algorithm>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/cache/filter.h"
#include "scheduler/cache/scheduler_cache.h"
#include "scheduler/simulate/node_judge.h"

namespace qrm::scheduler {
namespace {

HandleRegistry RegisterAllBut(const SimulationOptions& options) {
  HandleRegistry handles;
  for (const auto& [type, factory] : options.factories) {
    if (!options.without.contains(type)) {
      handles.Register(type, factory);
    }
  }
  return handles;
}

/// A quantity that changes in steps, weighed by time.
class Meter {
 public:
  void Note(double until, double value) {
    area_ += value * (until - at_);
    at_ = until;
    highest_ = std::max(highest_, value);
    latest_ = value;
  }
  OverTime Result() const { return {.mean = at_ > 0 ? area_ / at_ : latest_, .highest = highest_}; }

 private:
  double at_ = 0;
  double area_ = 0;
  double highest_ = 0;
  double latest_ = 0;
};

class Player {
 public:
  Player(const Trace& trace, const SimulationOptions& options)
      : trace_(trace), handles_(RegisterAllBut(options)) {}

  StatusOr<SimulationReport> Play() {
    QRM_ASSIGN_OR_RETURN(cache_, SchedulerCache::Make(handles_));
    for (const Node& node : trace_.nodes) {
      QRM_RETURN_IF_ERROR(judge_.AddNode(node));
    }
    cache_->Run([this](ClusterCache& cache) { List(cache); });
    auto next = trace_.pods.begin();
    while (next != trace_.pods.end() || !ends_.empty()) {
      const bool ends_first =
          !ends_.empty() && (next == trace_.pods.end() || ends_.begin()->first <= next->at);
      Advance(ends_first ? ends_.begin()->first : next->at);
      if (ends_first) {
        End();
        Retry();
      } else {
        QRM_RETURN_IF_ERROR(Arrive(*next));
        ++next;
      }
    }
    Advance(now_);
    return Report();
  }

 private:
  void List(ClusterCache& cache) const {
    cache.ReplaceNodes(trace_.nodes, "");
    for (const std::string& resource : cache.resources()) {
      const auto objects = trace_.objects.find(resource);
      cache.ReplaceObjects(
          resource, objects == trace_.objects.end() ? std::vector<Object>() : objects->second, "");
    }
    cache.ReplacePods({});
  }

  /// Nothing has changed from the last event until `at`.
  void Advance(double at) {
    now_ = at;
    for (const char* resource : {"cpu", "memory"}) {
      const double allocatable = judge_.Allocatable(resource);
      meters_[resource].Note(at, allocatable > 0 ? judge_.Requested(resource) / allocatable : 0);
    }
    const NodeJudge::FreeCpus free = judge_.Free();
    fragmentation_.Note(at,
                        free.all == 0 ? 0 : 1 - static_cast<double>(free.in_largest) / free.all);
  }

  Status Arrive(const TracePod& traced) {
    ++report_.pods;
    if (!traced.pod.node.empty()) {
      ++report_.bound_by_others;
      return Start(traced, traced.pod, report_.refused_others);
    }
    cache_->Post([pod = traced.pod](ClusterCache& cache) { cache.SetPod(pod); });
    QRM_ASSIGN_OR_RETURN(const bool placed, Place(traced));
    if (!placed) {
      waiting_.push_back(&traced);
    }
    return OkStatus();
  }

  void End() {
    const Pod pod = std::move(ends_.begin()->second);
    ends_.erase(ends_.begin());
    judge_.Remove(pod.node, pod);
    cache_->Post([uid = pod.uid](ClusterCache& cache) { cache.DeletePod(uid, ""); });
  }

  void Retry() {
    for (auto pod = waiting_.begin(); pod != waiting_.end();) {
      const StatusOr<bool> placed = Place(**pod);
      pod = placed.ok() && *placed ? waiting_.erase(pod) : std::next(pod);
    }
  }

  /// The name of the best node, as a scheduler chooses it; empty when the pod fits nowhere.
  std::string Choose(const Pod& pod) {
    cache_->Run([](ClusterCache&) {});
    const SnapshotPtr snapshot = cache_->Load();
    const Node* best = nullptr;
    int best_score = 0;
    for (const Node& node : trace_.nodes) {
      if (!judge_.FitsWhole(node.name, pod) ||
          !RefusalOf(*snapshot, handles_, pod, node.name).empty()) {
        continue;
      }
      const int score = ScoreOf(*snapshot, pod, node.name);
      if (best == nullptr || score > best_score ||
          (score == best_score && node.name < best->name)) {
        best = &node;
        best_score = score;
      }
    }
    return best == nullptr ? std::string() : best->name;
  }

  StatusOr<bool> Place(const TracePod& traced) {
    const std::string node = Choose(traced.pod);
    if (node.empty()) {
      return false;
    }
    QRM_ASSIGN_OR_RETURN(const StringMap decision, cache_->Assume(traced.pod.uid, node));
    Pod pod = traced.pod;
    pod.node = node;
    for (const auto& [key, value] : decision) {
      pod.annotations[key] = value;
    }
    const double wait = now_ - traced.at;
    waited_ += wait;
    ++chosen_;
    report_.longest_wait = std::max(report_.longest_wait, wait);
    QRM_RETURN_IF_ERROR(Start(traced, pod, report_.false_accepts));
    return true;
  }

  /// The node admits `pod`, or `refusals` grows and the pod has failed.
  Status Start(const TracePod& traced, Pod pod, int& refusals) {
    Status admitted = judge_.Admit(pod.node, pod);
    if (admitted.code() == StatusCode::kNotFound) {
      return admitted;
    }
    pod.finished = !admitted.ok();
    cache_->Post([pod](ClusterCache& cache) { cache.SetPod(pod); });
    if (!admitted.ok()) {
      ++refusals;
      return OkStatus();
    }
    ++report_.placed;
    if (traced.lifetime.has_value()) {
      ends_.emplace(now_ + *traced.lifetime, std::move(pod));
    }
    return OkStatus();
  }

  SimulationReport Report() {
    report_.waiting = static_cast<int>(waiting_.size());
    report_.mean_wait = chosen_ == 0 ? 0 : waited_ / chosen_;
    report_.duration = now_;
    for (const auto& [resource, meter] : meters_) {
      report_.utilisation[resource] = meter.Result();
    }
    report_.fragmentation = fragmentation_.Result();
    const SnapshotPtr snapshot = cache_->Load();
    for (const TracePod* const pod : waiting_) {
      for (const Node& node : trace_.nodes) {
        const std::string refusal = RefusalOf(*snapshot, handles_, pod->pod, node.name);
        ++report_.reasons[refusal.empty() ? "the node as a whole is full" : refusal];
      }
    }
    return report_;
  }

  const Trace& trace_;
  const HandleRegistry handles_;
  std::unique_ptr<SchedulerCache> cache_;
  NodeJudge judge_;
  double now_ = 0;
  std::list<const TracePod*> waiting_;  // in the order in which they came
  std::multimap<double, Pod> ends_;     // by time
  std::map<std::string, Meter> meters_;
  Meter fragmentation_;
  double waited_ = 0;
  int chosen_ = 0;
  SimulationReport report_;
};

}  // namespace

StatusOr<SimulationReport> Simulate(const Trace& trace, const SimulationOptions& options) {
  return Player(trace, options).Play();
}

}  // namespace qrm::scheduler
