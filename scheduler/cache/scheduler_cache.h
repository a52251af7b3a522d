// The cache for many threads: one queue, one writer, and a snapshot for all readers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "api/base/cond_var.h"
#include "api/base/mutex.h"
#include "api/base/status.h"
#include "api/base/task_thread.h"
#include "scheduler/cache/cluster_cache.h"
#include "scheduler/cache/handle.h"
#include "scheduler/cache/snapshot.h"

namespace qrm::scheduler {

/// Runs a ClusterCache on a thread of its own. What was posted is visible in snapshots once the
/// queue is empty, and after every 256 steps of a long one.
///
/// Threads: any.
class SchedulerCache {
 public:
  using Step = std::function<void(ClusterCache&)>;

  /// `handles` outlives the cache. Errors: those of ClusterCache::Make.
  static StatusOr<std::unique_ptr<SchedulerCache>> Make(const HandleRegistry& handles);

  /// Stops the handles first: their threads post.
  ~SchedulerCache() { cache_->StopHandles(); }
  SchedulerCache(const SchedulerCache&) = delete;
  SchedulerCache& operator=(const SchedulerCache&) = delete;

  /// Runs `step` on the writer, in the order of the calls.
  void Post(Step step);
  /// The same, and waits for it; what was posted before is visible then.
  void Run(const Step& step);

  /// The state as it was a moment ago; never waits for the writer.
  SnapshotPtr Load() const;

  /// Whether the snapshot has `kind` up to `version`; waits for it until `deadline`.
  bool AwaitVersion(const std::string& kind, const std::string& version,
                    std::chrono::steady_clock::time_point deadline);

  /// As ClusterCache::Assume; visible before it returns.
  StatusOr<StringMap> Assume(const std::string& uid, const std::string& node);
  std::string Dump();

  const HandleRegistry& handles() const { return handles_; }

 private:
  SchedulerCache(const HandleRegistry& handles, std::unique_ptr<ClusterCache> cache);
  void Publish();

  const HandleRegistry& handles_;
  std::unique_ptr<ClusterCache> cache_;  // the writer's
  uint64_t unpublished_ = 0;             // the writer's
  std::atomic<uint64_t> waiting_{0};
  mutable Mutex mutex_;
  CondVar published_;
  SnapshotPtr snapshot_ QRM_GUARDED_BY(mutex_);
  TaskThread writer_;
};

}  // namespace qrm::scheduler
