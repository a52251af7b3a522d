// Answers whether the cache is what a cache made of new lists is.
#pragma once

#include <atomic>

#include "api/base/task_thread.h"
#include "api/http/http_session.h"
#include "cluster/access.h"
#include "scheduler/cache/scheduler_cache.h"

namespace qrm::scheduler {

/// One comparison at a time, on a thread of its own: calls of kube-scheduler do not wait for it.
///
/// Threads: any.
class Comparer {
 public:
  /// `cache` outlives it.
  Comparer(SchedulerCache& cache, cluster::ClusterAccess access, MakeHandles make_handles);
  /// Ends a comparison that is under way.
  ~Comparer();
  Comparer(const Comparer&) = delete;
  Comparer& operator=(const Comparer&) = delete;

  /// Lists again, and replies once both caches are equal, or after half a minute. Replies at once
  /// with 503 while another comparison is under way.
  void Compare(const HttpReply& reply);

 private:
  HttpAnswer Run() const;

  SchedulerCache& cache_;
  const cluster::ClusterAccess access_;
  const MakeHandles make_handles_;
  std::atomic<bool> busy_ = false;
  std::atomic<bool> stopped_ = false;
  TaskThread thread_;
};

}  // namespace qrm::scheduler
