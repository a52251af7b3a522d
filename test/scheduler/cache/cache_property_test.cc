// Plays random histories of a cluster against the cache: streams that lag, repeat and are cut,
// bindings by others, lost answers, and a server that is restored to an earlier state.
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "scheduler/cache/cluster_cache.h"
#include "test/scheduler/cache/counted_resource.h"

namespace qrm::scheduler::cache_property_test {
namespace {

using test::AvailableIn;
using test::CountedHandles;
using test::kCountedObjects;
using test::MakeObject;
using test::RequestOf;

constexpr int kCapacity = 12;

struct Event {
  enum class Kind { kPod, kNode, kObject } kind = Kind::kPod;
  std::string name;  // UID of a pod
  bool deleted = false;
  Pod pod;
  int capacity = 0;
  uint64_t version = 0;
};

/// The objects of the API server.
struct Truth {
  std::map<std::string, Pod> pods;  // by UID
  std::set<std::string> nodes;
  std::map<std::string, int> capacities;  // by node
};

/// Possible events beside our own bindings.
struct Play {
  bool foreign = false;   // others bind, capacities and nodes change
  bool restores = false;  // the server is restored to an earlier state
};

/// An API server, the cache that follows it, and a binder that repeats a binding until it has an
/// answer.
class Cluster {
 public:
  Cluster(uint32_t seed, Play play) : random_(seed), play_(play) {
    for (const char* name : {"n1", "n2", "n3"}) {
      truth_.nodes.insert(name);
      truth_.capacities[name] = kCapacity;
    }
    saved_ = truth_;
    ListAll();
  }

  void Step() {
    switch (Pick(14)) {
      case 0:
      case 1:
        return Create();
      case 2:
        return Finish();
      case 3:
        return Touch();
      case 4:
      case 5:
        return Bind();
      case 6:
      case 7:
        return Answer();
      case 8:
        return Repeat();
      case 9:
        return Relist();
      case 10:
        return play_.foreign ? ForeignChange() : Deliver();
      case 11:
        return play_.restores && Pick(20) == 0 ? Restore() : Deliver();
      default:
        return Deliver();
    }
  }

  /// All answers and events arrive.
  void Settle() {
    while (!bindings_.empty()) {
      Answer();
    }
    while (next_ < log_.size()) {
      Deliver();
    }
  }

  /// What each node has left by the cache's input, computed again.
  void CheckAgainstModel() {
    const std::string dump = cache_->Dump();
    for (const auto& [node, capacity] : seen_.capacities) {
      int left = capacity;
      for (const auto& [uid, pod] : seen_.pods) {
        const auto ours = assumed_.find(uid);
        const std::string where = !pod.node.empty()        ? pod.node
                                  : ours != assumed_.end() ? ours->second
                                                           : std::string();
        left -= !pod.finished && where == node ? RequestOf(pod) : 0;
      }
      ASSERT_EQ(AvailableIn(dump, node), left) << node << "\n" << dump;
    }
  }

  void CheckNoOvercommit() const {
    std::map<std::string, int> used;
    for (const auto& [uid, pod] : truth_.pods) {
      used[pod.node] += pod.finished ? 0 : RequestOf(pod);
    }
    for (const std::string& node : truth_.nodes) {
      ASSERT_LE(used[node], kCapacity) << node;
    }
  }

  void CheckRebuildIsEqual() {
    const auto anew = *ClusterCache::Make(handles_);
    List(*anew, truth_, version_, anew->BeginList());
    EXPECT_EQ(cache_->Dump(), anew->Dump());
  }

 private:
  struct Binding {
    std::string uid;
    std::string node;
  };

  std::size_t Pick(std::size_t count) { return random_() % count; }
  template <typename Map>
  auto Any(Map& map) {
    return map.empty() ? map.end() : std::next(map.begin(), static_cast<int>(Pick(map.size())));
  }

  void Log(Event event) {
    event.version = ++version_;
    log_.push_back(std::move(event));
  }
  void LogPod(Pod& pod) {
    pod.resource_version = std::to_string(version_ + 1);
    Log({.kind = Event::Kind::kPod, .name = pod.uid, .pod = pod});
  }

  void Create() {
    const std::string uid = "u" + std::to_string(++created_);
    Pod& pod = truth_.pods[uid] = test::MakePod(uid, static_cast<int>(Pick(6)));
    LogPod(pod);
  }
  void Finish() {
    const auto pod = Any(truth_.pods);
    if (pod == truth_.pods.end()) {
      return;
    }
    if (Pick(2) == 0) {
      pod->second.finished = true;
      return LogPod(pod->second);
    }
    Log({.kind = Event::Kind::kPod, .name = pod->first, .deleted = true});
    truth_.pods.erase(pod);
  }
  void Touch() {
    const auto pod = Any(truth_.pods);
    if (pod != truth_.pods.end()) {
      pod->second.labels["touched"] = std::to_string(Pick(3));
      LogPod(pod->second);
    }
  }
  void ForeignChange() {
    const auto pod = Any(truth_.pods);
    const std::string node = "n" + std::to_string(1 + Pick(4));
    if (Pick(3) != 0) {
      if (pod != truth_.pods.end() && pod->second.node.empty()) {
        pod->second.node = node;
        LogPod(pod->second);
      }
    } else if (Pick(2) == 0) {
      truth_.capacities[node] = static_cast<int>(Pick(20));
      Log({.kind = Event::Kind::kObject, .name = node, .capacity = truth_.capacities[node]});
    } else {
      const bool there = !truth_.nodes.insert(node).second;
      if (there) {
        truth_.nodes.erase(node);
      }
      Log({.kind = Event::Kind::kNode, .name = node, .deleted = there});
    }
  }

  void Bind() {
    const auto pod = Any(seen_.pods);
    const std::string node = "n" + std::to_string(1 + Pick(3));
    if (pod == seen_.pods.end()) {
      return;
    }
    const bool was_assumed = assumed_.contains(pod->first);
    const auto decision = cache_->Assume(pod->first, node);
    if (decision.ok() && !was_assumed) {
      assumed_[pod->first] = node;
      accepted_.erase(pod->first);
      bindings_.push_back({.uid = pod->first, .node = node});
    }
  }
  /// The server answers a binding, or makes it and the answer is lost.
  void Answer() {
    if (bindings_.empty()) {
      return;
    }
    const std::size_t at = Pick(bindings_.size());
    const Binding binding = bindings_[at];
    const auto pod = truth_.pods.find(binding.uid);
    const bool unbound = pod != truth_.pods.end() && pod->second.node.empty();
    if (unbound) {
      pod->second.node = binding.node;
      pod->second.annotations[test::kCountedDecision] = "for " + pod->second.name;
      LogPod(pod->second);
    }
    if (Pick(3) == 0) {
      return;  // lost: it is repeated
    }
    bindings_.erase(bindings_.begin() + static_cast<std::ptrdiff_t>(at));
    if (pod != truth_.pods.end() && pod->second.node == binding.node) {
      cache_->Accept(binding.uid);
      accepted_.insert(binding.uid);
      return;
    }
    cache_->Release(binding.uid, binding.node);
    if (const auto ours = assumed_.find(binding.uid);
        ours != assumed_.end() && ours->second == binding.node) {
      assumed_.erase(ours);
    }
  }

  void Deliver() {
    if (next_ < log_.size()) {
      Tell(log_[next_++]);
    }
  }
  void Repeat() {
    if (next_ > begin_) {
      const std::size_t back = 1 + Pick(std::min<std::size_t>(next_ - begin_, 6));
      for (std::size_t at = next_ - back; at < next_; ++at) {
        Tell(log_[at]);
      }
    }
  }
  void Tell(const Event& event) {
    const std::string version = std::to_string(event.version);
    if (event.kind == Event::Kind::kNode) {
      event.deleted ? cache_->DeleteNode(event.name, version)
                    : cache_->SetNode({.name = event.name, .resource_version = version});
      return;
    }
    if (event.kind == Event::Kind::kObject) {
      Object object = MakeObject(event.name, event.name, event.capacity);
      object.resource_version = version;
      cache_->SetObject(kCountedObjects, std::move(object));
      seen_.capacities[event.name] =
          TakesEffect(event) ? event.capacity : seen_.capacities[event.name];
      return;
    }
    event.deleted ? cache_->DeletePod(event.name, version) : cache_->SetPod(event.pod);
    if (!TakesEffect(event)) {
      return;
    }
    if (event.deleted) {
      seen_.pods.erase(event.name);
      assumed_.erase(event.name);
    } else {
      seen_.pods[event.name] = event.pod;
      if (event.pod.finished || !event.pod.node.empty()) {
        assumed_.erase(event.name);
      }
    }
  }
  // Each event once, in its order.
  bool TakesEffect(const Event& event) {
    return std::exchange(told_, std::max(told_, event.version)) < event.version;
  }

  void ListAll() {
    const uint64_t begun = cache_->BeginList();
    const Truth listed = truth_;
    const std::set<std::string> accepted = accepted_;
    const uint64_t version = version_;
    next_ = begin_ = log_.size();
    for (std::size_t i = Pick(3); i > 0; --i) {
      Answer();  // while the list is on its way
    }
    List(*cache_, listed, version, begun);
    seen_ = listed;
    told_ = version;
    for (auto ours = assumed_.begin(); ours != assumed_.end();) {
      const auto pod = listed.pods.find(ours->first);
      const bool ends = pod == listed.pods.end() || pod->second.finished ||
                        !pod->second.node.empty() || accepted.contains(ours->first);
      ours = ends ? assumed_.erase(ours) : std::next(ours);
    }
  }
  static void List(ClusterCache& cache, const Truth& truth, uint64_t reached, uint64_t begun) {
    const std::string version = std::to_string(reached);
    std::vector<Node> nodes;
    nodes.reserve(truth.nodes.size());
    for (const std::string& name : truth.nodes) {
      nodes.push_back({.name = name});
    }
    std::vector<Object> objects;
    objects.reserve(truth.capacities.size());
    for (const auto& [node, capacity] : truth.capacities) {
      objects.push_back(MakeObject(node, node, capacity));
    }
    PodList pods{.version = version, .begun = begun};
    for (const auto& [uid, pod] : truth.pods) {
      pods.pods.push_back(pod);
    }
    cache.ReplaceNodes(std::move(nodes), version);
    cache.ReplaceObjects(kCountedObjects, std::move(objects), version);
    cache.ReplacePods(std::move(pods));
  }
  void Relist() {
    if (Pick(4) == 0) {
      ListAll();
    }
    if (Pick(8) == 0) {
      saved_ = truth_;
      saved_version_ = version_;
    }
  }
  void Restore() {
    truth_ = saved_;
    version_ = saved_version_;
    ListAll();
  }

  std::mt19937 random_;
  const Play play_;
  Truth truth_;
  Truth saved_;
  uint64_t version_ = 1;
  uint64_t saved_version_ = 1;
  int created_ = 0;
  std::vector<Event> log_;
  std::size_t begin_ = 0;  // of the watch
  std::size_t next_ = 0;   // to deliver
  std::vector<Binding> bindings_;

  // The cache's input.
  Truth seen_;
  uint64_t told_ = 0;
  std::map<std::string, std::string> assumed_;  // UID -> node
  std::set<std::string> accepted_;

  const HandleRegistry handles_ = CountedHandles();
  std::unique_ptr<ClusterCache> cache_ = *ClusterCache::Make(handles_);
};

constexpr uint32_t kHistories = 60;
constexpr int kSteps = 300;

TEST(CachePropertyTest, FollowsItsRulesThroughRandomHistories) {
  for (uint32_t seed = 0; seed < kHistories; ++seed) {
    SCOPED_TRACE(seed);
    Cluster cluster(seed, {.foreign = true, .restores = seed % 2 == 0});
    for (int step = 0; step < kSteps; ++step) {
      cluster.Step();
      ASSERT_NO_FATAL_FAILURE(cluster.CheckAgainstModel()) << "step " << step;
    }
  }
}

TEST(CachePropertyTest, NeverPlacesMoreThanFits) {
  for (uint32_t seed = 0; seed < kHistories; ++seed) {
    SCOPED_TRACE(seed);
    Cluster cluster(seed, {});
    for (int step = 0; step < kSteps; ++step) {
      cluster.Step();
      ASSERT_NO_FATAL_FAILURE(cluster.CheckNoOvercommit()) << "step " << step;
    }
  }
}

TEST(CachePropertyTest, EqualsARebuildWhenAllHasArrived) {
  for (uint32_t seed = 0; seed < kHistories; ++seed) {
    SCOPED_TRACE(seed);
    Cluster cluster(seed, {.foreign = true, .restores = seed % 2 == 1});
    for (int step = 0; step < kSteps; ++step) {
      cluster.Step();
    }
    cluster.Settle();
    cluster.CheckRebuildIsEqual();
  }
}

}  // namespace
}  // namespace qrm::scheduler::cache_property_test
