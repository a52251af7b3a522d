// Publishes when the queue has run empty, so that a burst of events costs one snapshot.
#include "scheduler/cache/scheduler_cache.h"

#include <utility>

#include "api/resource_version.h"

namespace qrm::scheduler {
namespace {

/// So that readers do not wait for the end of a list of 100,000 pods.
constexpr uint64_t kMostUnpublished = 256;

}  // namespace

StatusOr<std::unique_ptr<SchedulerCache>> SchedulerCache::Make(const HandleRegistry& handles) {
  QRM_ASSIGN_OR_RETURN(auto cache, ClusterCache::Make(handles));
  return std::unique_ptr<SchedulerCache>(new SchedulerCache(handles, std::move(cache)));
}

SchedulerCache::SchedulerCache(const HandleRegistry& handles, std::unique_ptr<ClusterCache> cache)
    : handles_(handles), cache_(std::move(cache)), snapshot_(cache_->Publish()) {
  cache_->OnPosted([this] { Post([](ClusterCache& now) { now.RunPosted(); }); });
  Post([](ClusterCache& now) { now.RunPosted(); });  // what came before
}

void SchedulerCache::Post(Step step) {
  ++waiting_;
  writer_.Post([this, step = std::move(step)] {
    step(*cache_);
    ++unpublished_;
    if (--waiting_ == 0 || unpublished_ >= kMostUnpublished) {
      Publish();
    }
  });
}

void SchedulerCache::Run(const Step& step) {
  writer_.Run([this, &step] {
    step(*cache_);
    Publish();
  });
}

SnapshotPtr SchedulerCache::Load() const {
  const MutexLock lock(mutex_);
  return snapshot_;
}

bool SchedulerCache::AwaitVersion(const std::string& kind, const std::string& version,
                                  std::chrono::steady_clock::time_point deadline) {
  const MutexLock lock(mutex_);
  return published_.WaitUntil(mutex_, deadline, [&]() QRM_REQUIRES(mutex_) {
    const auto reached = snapshot_->versions.find(kind);
    return reached != snapshot_->versions.end() && CompareVersions(reached->second, version) >= 0;
  });
}

StatusOr<StringMap> SchedulerCache::Assume(const std::string& uid, const std::string& node) {
  StatusOr<StringMap> decision = StringMap();
  Run([&](ClusterCache& cache) { decision = cache.Assume(uid, node); });
  return decision;
}

std::string SchedulerCache::Dump() {
  std::string dump;
  Run([&](const ClusterCache& cache) { dump = cache.Dump(); });
  return dump;
}

void SchedulerCache::Publish() {
  unpublished_ = 0;
  SnapshotPtr snapshot = cache_->Publish();
  const MutexLock lock(mutex_);
  snapshot_ = std::move(snapshot);
  published_.NotifyAll();
}

}  // namespace qrm::scheduler
