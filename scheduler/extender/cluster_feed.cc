// One listener for each kind: pods, nodes, custom resources.
#include "scheduler/extender/cluster_feed.h"

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "api/base/errorf.h"
#include "api/base/log.h"
#include "api/base/mutex.h"
#include "scheduler/cache/read_objects.h"

namespace qrm::scheduler {
namespace {

using nlohmann::json;

/// A pod that leaves the selector is reported as deleted: a finished pod uses nothing.
constexpr char kUnfinished[] = "status.phase!=Succeeded,status.phase!=Failed";

/// Calls `use` with what was read.
template <typename Item, typename Use>
void UseIfRead(StatusOr<Item> item, Use use) {
  if (item.ok()) {
    use(*std::move(item));
  } else {
    log::Warning("object of the cluster left out", {{"error", MessageOf(item.status())}});
  }
}

class PodListener final : public cluster::ObjectListener {
 public:
  explicit PodListener(SchedulerCache& cache) : cache_(cache) {}

  void OnListBegin() override {
    // Waits for the writer, so that what was accepted so far counts as accepted before the list.
    cache_.Run([this](ClusterCache& cache) { begun_ = cache.BeginList(); });
  }
  void OnItem(const json& object) override {
    UseIfRead(ReadPod(object), [this](Pod pod) {
      cache_.Post(
          [pod = std::move(pod)](ClusterCache& cache) mutable { cache.AddListed(std::move(pod)); });
    });
  }
  void OnListEnd(const std::string& version) override {
    cache_.Post([version, begun = begun_](ClusterCache& cache) {
      cache.ReplacePods({.version = version, .begun = begun});
    });
  }
  void OnSet(const json& object) override {
    UseIfRead(ReadPod(object), [this](Pod pod) {
      cache_.Post(
          [pod = std::move(pod)](ClusterCache& cache) mutable { cache.SetPod(std::move(pod)); });
    });
  }
  void OnDelete(const json& object) override {
    UseIfRead(ReadPod(object), [this](const Pod& pod) {
      cache_.Post([uid = pod.uid, version = pod.resource_version](ClusterCache& cache) {
        cache.DeletePod(uid, version);
      });
    });
  }
  void OnVersion(const std::string& version) override {
    cache_.Post([version](ClusterCache& cache) { cache.Reach(kPods, version); });
  }

 private:
  SchedulerCache& cache_;
  uint64_t begun_ = 0;
};

class NodeListener final : public cluster::ObjectListener {
 public:
  /// `list_pods` is called on the cache's writer.
  NodeListener(SchedulerCache& cache, std::function<void()> list_pods)
      : cache_(cache), list_pods_(std::move(list_pods)) {}

  void OnListBegin() override { nodes_.clear(); }
  void OnItem(const json& object) override {
    UseIfRead(ReadNode(object), [this](Node node) { nodes_.push_back(std::move(node)); });
  }
  void OnListEnd(const std::string& version) override {
    Post([nodes = std::exchange(nodes_, {}), version](ClusterCache& cache) {
      cache.ReplaceNodes(nodes, version);
    });
  }
  void OnSet(const json& object) override {
    UseIfRead(ReadNode(object), [this](Node node) {
      Post([node = std::move(node)](ClusterCache& cache) { cache.SetNode(node); });
    });
  }
  void OnDelete(const json& object) override {
    UseIfRead(ReadNode(object), [this](const Node& node) {
      cache_.Post([name = node.name, version = node.resource_version](ClusterCache& cache) {
        cache.DeleteNode(name, version);
      });
    });
  }
  void OnVersion(const std::string& version) override {
    cache_.Post([version](ClusterCache& cache) { cache.Reach(kNodes, version); });
  }

 private:
  /// Nodes name annotations that their pods are told apart by.
  void Post(SchedulerCache::Step step) {
    cache_.Post([step = std::move(step), list_pods = list_pods_](ClusterCache& cache) {
      step(cache);
      if (cache.TakeNewAnnotationKeys()) {
        list_pods();
      }
    });
  }

  SchedulerCache& cache_;
  const std::function<void()> list_pods_;
  std::vector<Node> nodes_;
};

class CustomListener final : public cluster::ObjectListener {
 public:
  CustomListener(SchedulerCache& cache, std::string resource)
      : cache_(cache), resource_(std::move(resource)) {}

  void OnListBegin() override { objects_.clear(); }
  void OnItem(const json& object) override { objects_.push_back(Read(object)); }
  void OnListEnd(const std::string& version) override {
    cache_.Post([resource = resource_, objects = std::exchange(objects_, {}), version](
                    ClusterCache& cache) { cache.ReplaceObjects(resource, objects, version); });
  }
  void OnSet(const json& object) override {
    cache_.Post([resource = resource_, read = Read(object)](ClusterCache& cache) {
      cache.SetObject(resource, read);
    });
  }
  void OnDelete(const json& object) override {
    cache_.Post([resource = resource_, read = Read(object)](ClusterCache& cache) {
      cache.DeleteObject(resource, read.name, read.resource_version);
    });
  }
  void OnVersion(const std::string& version) override {
    cache_.Post(
        [resource = resource_, version](ClusterCache& cache) { cache.Reach(resource, version); });
  }

 private:
  /// Without who wrote which field: half of an object, of no use here.
  static Object Read(const json& object) {
    json body = object;
    if (body.contains("metadata")) {
      body["metadata"].erase("managedFields");
    }
    const std::string space = TextAt(body, "/metadata/namespace");
    const std::string name = TextAt(body, "/metadata/name");
    return {.name = space.empty() ? name : space + "/" + name,
            .resource_version = TextAt(body, "/metadata/resourceVersion"),
            .body = std::make_shared<const json>(std::move(body))};
  }

  SchedulerCache& cache_;
  const std::string resource_;
  std::vector<Object> objects_;
};

}  // namespace

StatusOr<std::string> CollectionPath(const std::string& named) {
  const auto slash = named.find('/');
  const std::string space =
      slash == std::string::npos ? "" : "/namespaces/" + named.substr(0, slash);
  const std::string resource = slash == std::string::npos ? named : named.substr(slash + 1);
  const auto dot = resource.find('.');
  const std::string name = resource.substr(0, dot);
  const std::string rest = dot == std::string::npos ? "" : resource.substr(dot + 1);
  const std::string version = rest.substr(0, rest.find('.'));
  const std::string group = rest.size() == version.size() ? "" : rest.substr(version.size() + 1);
  const bool grouped = rest.size() != version.size();
  if (name.empty() || !version.starts_with('v') ||
      (grouped && (group.empty() || group.back() == '.'))) {
    return Errorf(StatusCode::kInvalidArgument,
                  "cannot follow {}: it is not a resource with version and group; write it like "
                  "noderesourcetopologies.v1alpha2.topology.node.k8s.io or configmaps.v1",
                  named);
  }
  return grouped ? fmt::format("/apis/{}/{}{}/{}", group, version, space, name)
                 : fmt::format("/api/{}{}/{}", version, space, name);
}

/// What is followed, and how; the listener outlives the watch.
struct ClusterFeed::Kind {
  Kind(boost::asio::io_context& loop, cluster::ApiClient& api,
       cluster::ListWatchOptions watch_options, std::unique_ptr<cluster::ObjectListener> who)
      : io(loop), client(api), options(std::move(watch_options)), listener(std::move(who)) {}

  /// Begins with a list, whatever was followed before.
  void Begin() {
    auto next = std::make_shared<cluster::ListWatch>(io, client, options, *listener);
    {
      const MutexLock lock(mutex);
      std::swap(watch, next);
    }
    next.reset();  // the listener gets no events while the watch restarts
    watch->Start();
  }

  cluster::ListWatchStatus status() const {
    const MutexLock lock(mutex);
    return watch == nullptr ? cluster::ListWatchStatus() : watch->status();
  }

  boost::asio::io_context& io;
  cluster::ApiClient& client;
  const cluster::ListWatchOptions options;
  const std::unique_ptr<cluster::ObjectListener> listener;
  mutable Mutex mutex;
  std::shared_ptr<cluster::ListWatch> watch;  // changed on the loop, with the mutex
};

StatusOr<std::unique_ptr<ClusterFeed>> ClusterFeed::Make(boost::asio::io_context& io,
                                                         cluster::ApiClient& client,
                                                         SchedulerCache& cache) {
  std::map<std::string, std::shared_ptr<Kind>> kinds;
  const auto pods = std::make_shared<Kind>(
      io, client, cluster::ListWatchOptions{.path = "/api/v1/pods", .field_selector = kUnfinished},
      std::make_unique<PodListener>(cache));
  kinds[kPods] = pods;
  const auto list_pods = [&io, weak = std::weak_ptr<Kind>(pods)] {
    boost::asio::post(io, [weak] {
      if (const auto kind = weak.lock()) {
        kind->Begin();
      }
    });
  };
  kinds[kNodes] =
      std::make_shared<Kind>(io, client, cluster::ListWatchOptions{.path = "/api/v1/nodes"},
                             std::make_unique<NodeListener>(cache, list_pods));
  std::vector<std::string> resources;
  cache.Run([&](const ClusterCache& now) { resources = now.resources(); });
  for (const std::string& resource : resources) {
    QRM_ASSIGN_OR_RETURN(std::string path, CollectionPath(resource));
    kinds[resource] =
        std::make_shared<Kind>(io, client, cluster::ListWatchOptions{.path = std::move(path)},
                               std::make_unique<CustomListener>(cache, resource));
  }
  return std::unique_ptr<ClusterFeed>(new ClusterFeed(std::move(kinds)));
}

ClusterFeed::ClusterFeed(std::map<std::string, std::shared_ptr<Kind>> kinds)
    : kinds_(std::move(kinds)) {}

ClusterFeed::~ClusterFeed() = default;

void ClusterFeed::Start() {
  for (const auto& [name, kind] : kinds_) {
    if (name != kPods) {  // pods are listed once the nodes have named the annotations to read
      kind->Begin();
    }
  }
}

void ClusterFeed::ListPodsAnew() {
  kinds_.at(kPods)->Begin();
}

Status ClusterFeed::CheckPodsListed() const {
  return kinds_.at(kPods)->status().listed
             ? OkStatus()
             : Errorf(StatusCode::kUnavailable,
                      "cannot bind: the list of pods since we began to lead has not come yet; try "
                      "again in a moment");
}

std::map<std::string, cluster::ListWatchStatus> ClusterFeed::statuses() const {
  std::map<std::string, cluster::ListWatchStatus> statuses;
  for (const auto& [name, kind] : kinds_) {
    statuses[name] = kind->status();
  }
  return statuses;
}

Status ClusterFeed::CheckFresh(std::chrono::milliseconds longest) const {
  const auto now = std::chrono::steady_clock::now();
  for (const auto& [name, status] : statuses()) {
    if (!status.trouble.ok() && now - status.trouble_since > longest) {
      return Errorf(StatusCode::kUnavailable,
                    "cannot judge nodes: the {} are not followed: {}; it is tried again and again",
                    name, MessageOf(status.trouble));
    }
  }
  return OkStatus();
}

struct FreshCache::Impl {
  Impl(const cluster::ClusterAccess& access, MakeHandles make, const std::string& user_agent)
      : make_handles(std::move(make)), client(io, access, {.user_agent = user_agent}) {}

  const MakeHandles make_handles;
  HandleRegistry handles;
  boost::asio::io_context io{1};
  std::unique_ptr<SchedulerCache> cache;
  cluster::ApiClient client;
  std::unique_ptr<ClusterFeed> feed;
};

FreshCache::FreshCache(const cluster::ClusterAccess& access, MakeHandles make_handles,
                       const std::string& user_agent)
    : impl_(new Impl(access, std::move(make_handles), user_agent)) {}

FreshCache::~FreshCache() = default;

Status FreshCache::Start() {
  QRM_ASSIGN_OR_RETURN(impl_->handles, impl_->make_handles());
  QRM_ASSIGN_OR_RETURN(impl_->cache, SchedulerCache::Make(impl_->handles));
  QRM_ASSIGN_OR_RETURN(impl_->feed, ClusterFeed::Make(impl_->io, impl_->client, *impl_->cache));
  impl_->feed->Start();
  return OkStatus();
}

Status FreshCache::Follow(std::chrono::milliseconds time) {
  impl_->io.restart();  // it ends when there is nothing to wait for
  impl_->io.run_for(time);
  for (const auto& [kind, status] : impl_->feed->statuses()) {
    if (!status.trouble.ok()) {
      return Errorf(StatusCode::kUnavailable, "cannot list {}: {}", kind,
                    MessageOf(status.trouble));
    }
  }
  return OkStatus();
}

SchedulerCache& FreshCache::cache() {
  return *impl_->cache;
}

}  // namespace qrm::scheduler
