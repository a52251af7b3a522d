// The specs that one source has reported, and the callers that wait for more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "api/base/clock.h"
#include "api/base/mutex.h"
#include "manager/demand/pod_spec.h"

namespace qrm::manager {

/// Specs by pod UID; mirrors of static pods also by the static pod's UID, namespace and name.
///
/// Threads: any.
class SpecCache {
 public:
  /// A node has a few hundred pods; a source that reports more than this is faulty.
  static constexpr std::size_t kMaxPods = 10'000;

  using Gone = std::function<void(const std::string& uid)>;

  /// `on_gone` is called for each pod that the source no longer has, on the calling thread.
  explicit SpecCache(Gone on_gone = [](const std::string&) {}) : on_gone_(std::move(on_gone)) {}

  /// Null if unknown.
  PodSpecPtr Find(const std::string& uid) const;
  /// As SpecSource::FindMirror.
  PodSpecPtr FindMirror(const std::string& static_uid, const std::string& pod_namespace,
                        const std::string& name) const;
  std::size_t size() const;
  /// As SpecSource::revision.
  uint64_t revision() const;

  /// Replaces the spec of the same pod. False if there are too many.
  bool Put(PodSpec spec);
  void Remove(const std::string& uid);
  void Replace(std::vector<PodSpec> specs);

  /// Between the two, the source reports all its specs; EndSync drops those that it did not report.
  void BeginSync();
  void EndSync();

  /// False if the pod is looked for already.
  bool BeginLookup(const std::string& uid);
  void EndLookup(const std::string& uid);
  /// Until this call, every pod counts as looked for.
  void SetSettled();

  /// As SpecSource::AfterLooking: `done` runs on the thread that ends the lookup.
  void AfterLooking(const std::string& uid, Deadline deadline, std::function<void()> done);

 private:
  void RemoveLocked(const std::string& uid) QRM_REQUIRES(mutex_);
  bool IsLookedFor(const std::string& uid) const QRM_REQUIRES(mutex_);
  void RunEnded();

  /// Static UID, namespace and name.
  using StaticPod = std::tuple<std::string, std::string, std::string>;

  struct Waiter {
    std::string uid;
    Deadline deadline;
    std::function<void()> done;
  };

  const Gone on_gone_;
  mutable Mutex mutex_;
  bool settled_ QRM_GUARDED_BY(mutex_) = false;
  uint64_t revision_ QRM_GUARDED_BY(mutex_) = 0;
  std::map<std::string, PodSpecPtr> specs_ QRM_GUARDED_BY(mutex_);
  std::map<StaticPod, std::string> uid_of_mirror_ QRM_GUARDED_BY(mutex_);
  std::set<std::string> looked_for_ QRM_GUARDED_BY(mutex_);
  std::vector<Waiter> waiters_ QRM_GUARDED_BY(mutex_);
  std::set<std::string> not_told_again_ QRM_GUARDED_BY(mutex_);
};

}  // namespace qrm::manager
