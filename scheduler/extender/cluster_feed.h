// Brings the API server's events into the scheduler's cache.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "api/base/hidden.h"
#include "api/base/io_context.h"
#include "api/base/status.h"
#include "cluster/access.h"
#include "cluster/api_client.h"
#include "cluster/list_watch.h"
#include "scheduler/cache/scheduler_cache.h"

namespace qrm::scheduler {

/// The path of a resource as Feed names it: "things.v1.test.io" is "/apis/test.io/v1/things", and
/// "ns/configmaps.v1" is "/api/v1/namespaces/ns/configmaps". Errors: kInvalidArgument with the
/// form.
StatusOr<std::string> CollectionPath(const std::string& named);

/// Follows pods that have not finished, nodes, and the custom resources that the cache's handles
/// subscribed to: each change becomes a step of the cache's writer, in the order of its kind. Pods
/// are listed after the nodes, and again when a node names an annotation that was not kept of them.
///
/// Threads: made, started and destroyed on that of `io`; the others any.
class ClusterFeed {
 public:
  /// The references outlive it, and `io` the cache. Errors: those of CollectionPath.
  static StatusOr<std::unique_ptr<ClusterFeed>> Make(boost::asio::io_context& io,
                                                     cluster::ApiClient& client,
                                                     SchedulerCache& cache);
  ~ClusterFeed();
  ClusterFeed(const ClusterFeed&) = delete;
  ClusterFeed& operator=(const ClusterFeed&) = delete;

  void Start();
  /// Lists all pods again; CheckPodsListed fails until that list has come.
  void ListPodsAnew();
  Status CheckPodsListed() const;

  /// By kind, as in VersionByKind.
  std::map<std::string, cluster::ListWatchStatus> statuses() const;

  /// OK while nothing has been in trouble for `longest`. Errors: kUnavailable naming the kind and
  /// the trouble.
  Status CheckFresh(std::chrono::milliseconds longest) const;

 private:
  struct Kind;
  explicit ClusterFeed(std::map<std::string, std::shared_ptr<Kind>> kinds);

  /// Shared with steps of the cache's writer, which do not keep them.
  const std::map<std::string, std::shared_ptr<Kind>> kinds_;
};

/// A cache made of lists of its own, beside the one that lives: follows a cluster by a client of
/// its own, on the thread that calls it.
///
/// Threads: one.
class FreshCache {
 public:
  FreshCache(const cluster::ClusterAccess& access, MakeHandles make_handles,
             const std::string& user_agent);
  ~FreshCache();
  FreshCache(const FreshCache&) = delete;
  FreshCache& operator=(const FreshCache&) = delete;

  /// Begins to list. Errors: those of the handles, SchedulerCache::Make and ClusterFeed::Make.
  Status Start();
  /// Takes the API server's events within `time`. Errors: kUnavailable while one of the lists is
  /// in trouble, naming it.
  Status Follow(std::chrono::milliseconds time);

  /// After Start.
  SchedulerCache& cache();

 private:
  struct Impl;
  Hidden<Impl> impl_;
};

}  // namespace qrm::scheduler
