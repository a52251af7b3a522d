// A cache made of lists of its own, beside the one that lives.
#pragma once

#include <chrono>
#include <string>

#include "api/base/hidden.h"
#include "api/base/status.h"
#include "cluster/access.h"
#include "scheduler/cache/scheduler_cache.h"

namespace qrm::scheduler {

/// Follows a cluster by a client of its own, on the thread that calls it.
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
